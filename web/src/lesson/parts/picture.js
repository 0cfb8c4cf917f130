// A matrix as an image, in the instrument's scales.
import { stepOf } from '../../scale.js';

/** @import { Scale } from '../../scale.js' */

/**
 * A picture of [R, C] numbers, of at most so many rows and columns; numbers that aren't finite are left clear.
 * @param {{ data: Float32Array, shape: readonly number[] }} tensor
 * @param {{ scale: Scale, most: number, rows: number, columns: number }} look `most`: the end of the scale
 * @returns {ImageData}
 */
export function pictureOf({ data, shape: [R, C] }, { scale, most, rows, columns }) {
  const image = new ImageData(columns, rows);
  const memory = new Uint32Array(image.data.buffer);
  for (let r = 0; r < rows; r++) {
    const from = Math.floor(((r + 0.5) * R) / rows) * C;
    for (let c = 0; c < columns; c++) {
      const value = data[from + Math.floor(((c + 0.5) * C) / columns)];
      if (Number.isFinite(value)) memory[r * columns + c] = scale.pixels[stepOf(scale, value, most)];
    }
  }
  return image;
}
