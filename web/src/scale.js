// Colours for numbers: an even sequential scale for weights, an even diverging one for scores and changes.
import { interpolateLab } from 'd3-interpolate';
import { interpolateCividis } from 'd3-scale-chromatic';

/**
 * @typedef {object} Scale
 * @property {Uint32Array} pixels as in the memory of an image
 * @property {string[]} colors
 * @property {boolean} isDiverging from −highest to highest, not from 0
 */

const kSteps = 256;

/** Of a colour as the interpolators of d3 write it. @param {string} text rgb(…) */
const channelsOf = (text) => (text.match(/\d+/g) ?? []).map(Number);

/** @param {(t: number) => string} color of 0 to 1 @param {boolean} isDiverging @returns {Scale} */
function scaleOf(color, isDiverging) {
  const colors = Array.from({ length: kSteps }, (_, i) => color(i / (kSteps - 1)));
  const bytes = Uint8ClampedArray.from(colors.flatMap((text) => [...channelsOf(text), 255]));
  return { pixels: new Uint32Array(bytes.buffer), colors, isDiverging };
}

/** As even in lightness to colour-blind eyes as to others. */
export const kSequential = scaleOf(interpolateCividis, false);

/** Ends of the same lightness, of hues that no colour-blindness confuses, on a page of either theme. */
const kEnds = /** @type {const} */ ({
  light: { low: '#2b6bbd', middle: '#fbfaf8', high: '#b04a00' },
  dark: { low: '#8abbff', middle: '#161513', high: '#ffa05c' },
});

/** @type {Map<string, Scale>} */
const diverging = new Map();

/** @param {string} theme @returns {Scale} */
export function divergingScale(theme) {
  const name = theme === 'dark' ? 'dark' : 'light';
  const { low, middle, high } = kEnds[name];
  const [below, above] = [interpolateLab(low, middle), interpolateLab(middle, high)];
  const made = diverging.get(name) ?? scaleOf((t) => (t < 0.5 ? below(2 * t) : above(2 * t - 1)), true);
  diverging.set(name, made);
  return made;
}

/** The scale of what is shown, in the theme of the page. @param {string} show */
export const scaleFor = (show) =>
  show === 'weights' ? kSequential : divergingScale(document.documentElement.dataset.theme ?? 'light');

/** @param {Scale} scale @param {number} value @param {number} highest what the upper end of the scale stands for */
export function stepOf({ isDiverging }, value, highest) {
  const t = highest > 0 ? value / highest : 0;
  const place = isDiverging ? (t + 1) / 2 : t;
  return Math.max(0, Math.min(kSteps - 1, Math.round(place * (kSteps - 1))));
}

/** Ink that is readable on a step. @param {Scale} scale @param {number} step */
export function inkOn({ colors }, step) {
  const [r, g, b] = channelsOf(colors[step]);
  return 0.299 * r + 0.587 * g + 0.114 * b > 128 ? '#15130f' : '#ffffff';
}

/** @param {Scale} scale */
export const gradientOf = ({ colors }) =>
  `linear-gradient(to right, ${Array.from({ length: 17 }, (_, i) => colors[Math.round((i / 16) * (kSteps - 1))]).join(', ')})`;
