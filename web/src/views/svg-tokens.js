// The tokens with their arcs, in as many lines as it takes.
import { pathOf } from './arc-path.js';
import { kMargin, label, rectangle, short } from './drawing.js';
import { themeColors } from './theme-colors.js';
import { heaviest } from './token-strip.jsx';
import { formatValue, viewName } from './words.js';

/** @import { Box } from './arc-path.js' */
/** @import { Drawing } from './drawing.js' */
/** @import { Given } from './exports.js' */

const kWidth = 720;
const kHigh = 20;
const kBetween = 40; // room for the arcs, and the numbers below the tokens
const kNumberWidth = 30;

/** @param {readonly string[]} tokens @returns {(Box & { width: number })[]} */
function placed(tokens) {
  const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
  ruler.font = '13px system-ui, sans-serif';
  let x = kMargin;
  let top = kMargin + 64;
  return tokens.map((token) => {
    const width = ruler.measureText(token).width + 10;
    if (x + width > kWidth - kMargin && x > kMargin) {
      x = kMargin;
      top += kHigh + kBetween;
    }
    x += width;
    return { x: x - width / 2, top, bottom: top + kHigh, width: width - 2 };
  });
}

/** How far down the number of each token goes, so that neighbours don't overlap. @param {readonly number[]} keys @param {readonly Box[]} boxes */
function levels(keys, boxes) {
  /** The ends of the last numbers of a line, level by level. @type {Map<number, number[]>} */
  const ends = new Map();
  return new Map(
    [...keys]
      .sort((a, b) => a - b)
      .map((key) => {
        const { x, top } = boxes[key];
        const taken = ends.get(top) ?? [];
        ends.set(top, taken);
        const free = taken.findIndex((end) => end <= x - kNumberWidth / 2);
        const level = free < 0 ? taken.length : free;
        taken[level] = x + kNumberWidth / 2;
        return [key, level];
      }),
  );
}

/** @param {Given} given @returns {Drawing} */
export function drawTokens({ state, shown: { run, matrix, view } }) {
  const { accent, arc: color, faint, ink } = themeColors();
  const { row, column } = state.focus;
  const boxes = placed(run.tokens);
  const arcs = heaviest(matrix, row, state.arcs);
  const largest = arcs.reduce((most, { value }) => Math.max(most, Math.abs(value)), 0) || 1;
  const paths = arcs.map(({ column: key, value }) => {
    const share = view.show === 'weights' ? Math.min(1, value) : Math.abs(value) / largest;
    const stroke = `stroke="${key === column ? accent : color}" stroke-width="${short(1 + 5 * share)}" stroke-opacity="${short(0.25 + 0.75 * share)}"`;
    return `<path d="${pathOf(boxes[row], boxes[key])}" fill="none" ${stroke} data-key="${key}"/>`;
  });
  const below = levels(
    arcs.map(({ column: key }) => key),
    boxes,
  );
  const numbers = arcs.map(({ column: key, value }) =>
    label(formatValue(view.show, value), boxes[key].x, boxes[key].bottom + 7 + 10 * (below.get(key) ?? 0), {
      ...{ anchor: 'middle', fill: key === column ? accent : faint, size: 10 },
    }),
  );
  const tokens = run.tokens.map((token, i) => {
    const { x, top, width } = boxes[i];
    const ground = i === row ? rectangle([x - width / 2, top, width, kHigh], accent) : '';
    const fill = i === row ? themeColors().ground : ink;
    return ground + label(token, x, top + kHigh / 2, { anchor: 'middle', size: 13, fill, bold: i === row });
  });
  const title = `${viewName(view, run)} · row ${row} “${run.tokens[row]}”, the ${arcs.length} heaviest`;
  return {
    width: kWidth,
    height: (boxes.at(-1)?.bottom ?? 0) + kMargin + 26,
    body: label(title, kMargin, kMargin + 6, { bold: true }) + paths.join('') + tokens.join('') + numbers.join(''),
  };
}
