// Colours for weights.

const kSteps = 256;

/**
 * cividis, which is as even in lightness to colour-blind eyes as to others; polynomials as in d3-scale-chromatic.
 * @param {number} t from 0 to 1
 * @returns {[number, number, number]}
 */
function cividis(t) {
  /** @param {number[]} c */
  const channel = (c) => Math.max(0, Math.min(255, Math.round(c.reduceRight((sum, value) => sum * t + value, 0))));
  return [
    channel([-4.54, -35.34, 2381.73, -6402.7, 7024.72, -2710.57]),
    channel([32.49, 170.73, 52.82, -131.46, 176.58, -67.37]),
    channel([81.24, 442.36, -2482.43, 6167.24, -6614.94, 2475.67]),
  ];
}

/** Red, green, blue of each step. */
export const kColors = Array.from({ length: kSteps }, (_, i) => cividis(i / (kSteps - 1)));

/** @param {number} value @param {number} highest what the upper end of the scale stands for */
export function stepOf(value, highest) {
  const t = highest > 0 ? value / highest : 0;
  return Math.max(0, Math.min(kSteps - 1, Math.round(t * (kSteps - 1))));
}

/** @param {number} step */
export function cssColor(step) {
  return `rgb(${kColors[step].join(' ')})`;
}

/** Ink that is readable on a step. @param {number} step */
export function inkOn(step) {
  return step > kSteps / 2 ? '#15130f' : '#ffffff';
}

export const kGradient = `linear-gradient(to right, ${Array.from({ length: 17 }, (_, i) => cssColor(Math.round((i / 16) * (kSteps - 1)))).join(', ')})`;
