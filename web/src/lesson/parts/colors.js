// Scales of the lesson's pictures, as the instrument has them: cividis for weights, an even one for numbers of both signs.
import { interpolateLab } from 'd3-interpolate';
import { interpolateCividis } from 'd3-scale-chromatic';

const kSteps = 255;

/** @typedef {(readonly number[])[]} Steps red, green and blue of each */

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

/** @param {'weights' | 'signed'} kind @param {string} theme @param {number} most the end of the scale @returns {(value: number) => readonly number[]} */
export function colorsFor(kind, theme, most) {
  const steps = stepsFor(kind, theme);
  return (value) => {
    const t = most > 0 ? value / most : 0;
    const place = kind === 'weights' ? t : (t + 1) / 2;
    return steps[Math.max(0, Math.min(kSteps - 1, Math.round(place * (kSteps - 1))))];
  };
}

/** @param {'weights' | 'signed'} kind @param {string} theme */
export function gradientOf(kind, theme) {
  const steps = stepsFor(kind, theme);
  const stops = Array.from({ length: 17 }, (_, i) => `rgb(${steps[Math.round((i / 16) * (kSteps - 1))].join(' ')})`);
  return `linear-gradient(to right, ${stops.join(', ')})`;
}
