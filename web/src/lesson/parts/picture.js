// A matrix as an image, in the instrument's scales.
import { visibleKeys } from '../../engine/rules.js';
import { stepOf } from '../../scale.js';

/** @import { Scale } from '../../scale.js' */
/** @import { Drawable } from '../engine/ranges.js' */

/**
 * A picture of [R, C] numbers, of at most so many rows and columns; what is hidden from a row is left clear.
 * @param {Pick<Drawable, 'data' | 'shape' | 'rule'>} tensor
 * @param {{ scale: Scale, most: number, rows: number, columns: number }} look `most`: the end of the scale
 * @returns {ImageData}
 */
export function pictureOf({ data, shape: [R, C], rule }, { scale, most, rows, columns }) {
  const image = new ImageData(columns, rows);
  const memory = new Uint32Array(image.data.buffer);
  for (let r = 0; r < rows; r++) {
    const row = Math.floor(((r + 0.5) * R) / rows);
    const [first, last] = rule ? visibleKeys(rule, row, C) : [0, C - 1];
    for (let c = 0; c < columns; c++) {
      const column = Math.floor(((c + 0.5) * C) / columns);
      if (column < first || column > last) continue;
      memory[r * columns + c] = scale.pixels[stepOf(scale, data[row * C + column], most)];
    }
  }
  return image;
}
