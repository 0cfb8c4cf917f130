// A matrix as a picture, with its name, its shape and what its colours mean.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { divergingScale, gradientOf, kSequential } from '../../scale.js';
import { fixed, sizeText } from '../numbers.js';
import { useTheme } from '../theme.js';
import { pictureOf } from './picture.js';

/** @import { Scale } from '../../scale.js' */
/** @import { Drawable } from '../engine/ranges.js' */

const kLargestCell = 12;

/**
 * @typedef {object} MapProps
 * @property {Drawable} tensor [R, C]
 * @property {string} name
 * @property {string} [says] what it is, in a word or two
 * @property {'weights' | 'signed'} [kind]
 * @property {number} [width] room, in CSS pixels @property {number} [height]
 * @property {number | null} [row] marked @property {number | null} [column]
 * @property {boolean} [isLit]
 * @property {(row: number, column: number) => void} [onPick]
 */

/** @type {OffscreenCanvas | null} */
let small = null;

/** One for all pictures: they are drawn one after the other, and a new one costs more than what is drawn. */
function smallCanvas() {
  small ??= new OffscreenCanvas(1, 1);
  return small;
}

/** @param {MapProps} props */
export function TensorMap({
  tensor,
  name,
  says,
  kind = 'signed',
  width = 136,
  height = 136,
  row,
  column,
  isLit,
  onPick,
}) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const theme = useTheme();
  const scale = kind === 'weights' ? kSequential : divergingScale(theme);
  const [R, C] = tensor.shape;
  const [low, high] = tensor.range;
  const most = kind === 'weights' ? high : Math.max(-low, high);
  const side = Math.min(kLargestCell, width / C, height / R);
  const size = [Math.max(4, side * C), Math.max(4, side * R)];
  useLayoutEffect(() => {
    if (canvas.current) draw(canvas.current, { tensor, scale, most, size, row, column });
  }, [tensor, scale, most, size[0], size[1], row, column]);
  const pick = (/** @type {MouseEvent} */ { offsetX, offsetY }) =>
    onPick?.(
      Math.min(R - 1, Math.floor((offsetY / size[1]) * R)),
      Math.min(C - 1, Math.floor((offsetX / size[0]) * C)),
    );
  const ends = kind === 'weights' ? ['0', fixed(high, 2)] : [fixed(-most, 2), fixed(most, 2)];
  return (
    <figure class={`tensor ${isLit ? 'lit' : ''}`}>
      <figcaption>
        <b>{name}</b> <span class="note number">{sizeText(tensor)}</span>
        {says && <span class="note says">{says}</span>}
      </figcaption>
      <canvas
        ref={canvas}
        role="img"
        aria-label={`${name}, ${R} by ${C}, from ${fixed(low, 2)} to ${fixed(high, 2)}`}
        class={onPick ? 'picks' : ''}
        onClick={pick}
      />
      <span class="ends number">
        {most > 0 ? (
          <>
            {ends[0]} <span class="ramp-small" style={{ backgroundImage: gradientOf(scale) }} /> {ends[1]}
          </>
        ) : (
          '0; hatched: −∞'
        )}
      </span>
    </figure>
  );
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {{ tensor: Drawable, scale: Scale, most: number, size: number[], row?: number | null, column?: number | null }} picture
 */
function draw(canvas, { tensor, scale, most, size, row, column }) {
  const [R, C] = tensor.shape;
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = size.map((length) => Math.round(length * ratio));
  if (canvas.width !== width || canvas.height !== height) {
    [canvas.width, canvas.height] = [width, height];
    [canvas.style.width, canvas.style.height] = size.map((length) => `${length}px`);
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.clearRect(0, 0, width, height);
  const [rows, columns] = [Math.min(R, height), Math.min(C, width)];
  const image = pictureOf(tensor, { scale, most, rows, columns });
  const cells = smallCanvas();
  [cells.width, cells.height] = [columns, rows];
  /** @type {OffscreenCanvasRenderingContext2D} */ (cells.getContext('2d')).putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(cells, 0, 0, width, height);
  const accent = getComputedStyle(canvas).getPropertyValue('--accent');
  const frames = [
    ...(row !== null && row !== undefined ? [[0, (row / R) * height, width, height / R]] : []),
    ...(column !== null && column !== undefined ? [[(column / C) * width, 0, width / C, height]] : []),
  ];
  context.strokeStyle = accent;
  context.lineWidth = ratio;
  for (const [x, y, w, h] of frames) {
    const half = ratio / 2; // within the picture, also along its edges
    context.strokeRect(x + half, y + half, Math.max(ratio, w - ratio), Math.max(ratio, h - ratio));
  }
}
