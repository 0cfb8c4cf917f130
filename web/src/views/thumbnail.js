// A matrix in the size of a stamp. Where cells are smaller than pixels, a pixel shows the largest of its cells: a thin
// diagonal stays in sight.
import { kColors, stepOf } from '../scale.js';

/** @import { Run } from '../types.js' */

const kSide = 64;

/**
 * @param {HTMLCanvasElement} canvas @param {Run} run @param {Float32Array} weights [T, T] @param {number} highest
 */
export function drawThumbnail(canvas, { tokens, causal }, weights, highest) {
  const count = tokens.length;
  const side = Math.round(kSide * (window.devicePixelRatio || 1));
  const cells = Math.min(count, side);
  canvas.width = canvas.height = side;
  if (cells === 0) return;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  const most = pooled(weights, count, cells);
  const image = new ImageData(cells, cells);
  for (let row = 0; row < cells; row++) {
    for (let column = 0; column < (causal ? row + 1 : cells); column++) {
      const index = row * cells + column;
      image.data.set(kColors[stepOf(most[index], highest)], index * 4);
      image.data[index * 4 + 3] = 255;
    }
  }
  const small = new OffscreenCanvas(cells, cells);
  /** @type {OffscreenCanvasRenderingContext2D} */ (small.getContext('2d')).putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, side, side);
}

/** @param {Float32Array} weights @param {number} count @param {number} cells @returns {Float32Array} [cells, cells] */
function pooled(weights, count, cells) {
  if (cells === count) return weights;
  const most = new Float32Array(cells * cells);
  const place = Int32Array.from({ length: count }, (_, i) => Math.floor((i * cells) / count));
  for (let row = 0; row < count; row++) {
    for (let column = 0; column < count; column++) {
      const index = place[row] * cells + place[column];
      most[index] = Math.max(most[index], weights[row * count + column]);
    }
  }
  return most;
}
