// Scales of the lesson's pictures, as the instrument has them: cividis for weights, an even one for numbers of both signs.
import { interpolateLab } from 'd3-interpolate';
import { interpolateCividis } from 'd3-scale-chromatic';

const kSteps = 255;

/** Red, green and blue of each step. @typedef {(readonly number[])[]} Steps */

/** Blue below zero, orange above; the middle is the ground of the page. */
const kEnds = {
  light: ['#2b6bbd', '#fbfaf8', '#b04a00'],
  dark: ['#8abbff', '#161513', '#ffa05c'],
};

/** @param {(t: number) => string} color of 0 to 1 @returns {Steps} */
const stepsOf = (color) =>
  Array.from({ length: kSteps }, (_, i) => (color(i / (kSteps - 1)).match(/\d+/g) ?? []).map(Number));

const kWeights = stepsOf(interpolateCividis);
const kSigned = Object.fromEntries(
  Object.entries(kEnds).map(([theme, [low, middle, high]]) => {
    const [below, above] = [interpolateLab(low, middle), interpolateLab(middle, high)];
    return [theme, stepsOf((t) => (t < 0.5 ? below(2 * t) : above(2 * t - 1)))];
  }),
);

/** @param {'weights' | 'signed'} kind @param {string} theme */
const stepsFor = (kind, theme) => (kind === 'weights' ? kWeights : (kSigned[theme] ?? kSigned.light));

/** As in the memory of an image. @param {Steps} steps */
const pixelsOf = (steps) => new Uint32Array(Uint8ClampedArray.from(steps.flatMap((rgb) => [...rgb, 255])).buffer);

/**
 * A picture of [R, C] numbers, of at most so many rows and columns; numbers that aren't finite are left clear.
 * @param {{ data: Float32Array, shape: readonly number[] }} tensor
 * @param {{ kind: 'weights' | 'signed', theme: string, most: number, rows: number, columns: number }} look `most`: the end of
 *   the scale
 * @returns {ImageData}
 */
export function pictureOf({ data, shape: [R, C] }, { kind, theme, most, rows, columns }) {
  const pixels = pixelsOf(stepsFor(kind, theme));
  const image = new ImageData(columns, rows);
  const memory = new Uint32Array(image.data.buffer);
  const [low, span] = kind === 'weights' ? [0, most] : [-most, 2 * most];
  const factor = span > 0 ? (kSteps - 1) / span : 0;
  const middle = kind === 'weights' ? 0 : (kSteps - 1) / 2;
  for (let r = 0; r < rows; r++) {
    const from = Math.floor(((r + 0.5) * R) / rows) * C;
    for (let c = 0; c < columns; c++) {
      const value = data[from + Math.floor(((c + 0.5) * C) / columns)];
      if (!Number.isFinite(value)) continue;
      const step = factor > 0 ? (value - low) * factor : middle;
      memory[r * columns + c] = pixels[Math.max(0, Math.min(kSteps - 1, Math.round(step)))];
    }
  }
  return image;
}

/** @param {'weights' | 'signed'} kind @param {string} theme */
export function gradientOf(kind, theme) {
  const steps = stepsFor(kind, theme);
  const stops = Array.from({ length: 17 }, (_, i) => `rgb(${steps[Math.round((i / 16) * (kSteps - 1))].join(' ')})`);
  return `linear-gradient(to right, ${stops.join(', ')})`;
}
