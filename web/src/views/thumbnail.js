// Matrices in the size of a stamp, a few at a time: the page stays free for whoever types meanwhile.
import { largest } from '../engine/matrix.js';
import { kSequential } from '../scale.js';
import { imageOf } from './heat-map.js';

/** @typedef {{ canvas: HTMLCanvasElement, tiles: Float32Array, side: number, byRow: boolean }} Stamp */

const kSide = 64;
const kSlice = 8; // milliseconds of drawing between two looks at what else there is to do

/** @type {Map<HTMLCanvasElement, Stamp>} */
const waiting = new Map();
let isDrawing = false;

/** @param {Stamp} stamp */
export function paintStamp(stamp) {
  waiting.set(stamp.canvas, stamp);
  if (!isDrawing) slice();
}

/** For whoever measures the page: the last time alone is kept. @param {string} name @param {number} start */
export function noteTime(name, start) {
  performance.clearMeasures(name);
  performance.measure(name, { start });
}

function slice() {
  const start = performance.now();
  const end = start + kSlice;
  for (const [canvas, stamp] of waiting) {
    waiting.delete(canvas);
    draw(stamp);
    if (performance.now() >= end) break;
  }
  noteTime('draw thumbnails', start);
  isDrawing = waiting.size > 0;
  if (isDrawing) setTimeout(slice);
}

/** @param {Stamp} stamp */
function draw({ canvas, tiles, side, byRow }) {
  const pixels = Math.round(kSide * (window.devicePixelRatio || 1));
  if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.clearRect(0, 0, pixels, pixels);
  if (side === 0) return;
  const ofRow = (/** @type {number} */ row) => largest(tiles.subarray(row * side, (row + 1) * side));
  context.imageSmoothingEnabled = false;
  context.drawImage(imageOf(tiles, side, kSequential, byRow ? ofRow : () => 1), 0, 0, pixels, pixels);
}
