// The scale for numbers of both signs: orange below zero, purple above, as even to colour-blind eyes as to others.
import { interpolatePuOr } from 'd3-scale-chromatic';
import { kColors, stepOf } from '../../scale.js';

const kSteps = 255;

/** @type {[number, number, number][]} */
const kSigned = Array.from({ length: kSteps }, (_, i) => {
  const [red, green, blue] = (interpolatePuOr(0.06 + (0.88 * i) / (kSteps - 1)).match(/\d+/g) ?? []).map(Number);
  return [red, green, blue];
});

/** @param {'weights' | 'signed'} kind @param {number} most the end of the scale @returns {(value: number) => [number, number, number]} */
export function colorsFor(kind, most) {
  if (kind === 'weights') return (value) => kColors[stepOf(value, most)];
  const middle = (kSteps - 1) / 2;
  return (value) =>
    kSigned[Math.max(0, Math.min(kSteps - 1, Math.round(middle + (most > 0 ? (value / most) * middle : 0))))];
}

/** @param {'weights' | 'signed'} kind */
export function gradientOf(kind) {
  const steps = kind === 'weights' ? kColors : kSigned;
  const stops = Array.from(
    { length: 17 },
    (_, i) => `rgb(${steps[Math.round((i / 16) * (steps.length - 1))].join(' ')})`,
  );
  return `linear-gradient(to right, ${stops.join(', ')})`;
}
