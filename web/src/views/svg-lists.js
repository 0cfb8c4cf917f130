// Lists of numbers as bars: the row in focus, the next tokens, the layers.
import { kMargin, label, rectangle } from './drawing.js';
import { rowValues } from './exports.js';
import { formatPercent } from './format.js';
import { themeColors } from './theme-colors.js';
import { formatValue, viewName } from './words.js';

/** @import { Drawing } from './drawing.js' */
/** @import { Given } from './exports.js' */
/** A line, with one bar for each of its shares. @typedef {{ name: string, bars: { share: number, text: string, fill: string }[] }} Line */

const kWidth = 540;
const kBarsFrom = kMargin + 130;
const kBarWidth = 300;

/** @param {string} title @param {Line[]} lines @param {string} [note] @returns {Drawing} */
function listOf(title, lines, note = '') {
  const { faint } = themeColors();
  const count = Math.max(1, ...lines.map(({ bars }) => bars.length));
  const high = 4 + 16 * count;
  const top = kMargin + 32;
  const body = lines.map(({ name, bars }, i) => {
    const middle = top + (i + 0.5) * high - 8;
    const texts = bars.map(({ share, text, fill }, j) => {
      const y = middle + (j - (bars.length - 1) / 2) * 14;
      const box = /** @type {const} */ ([kBarsFrom, y - 5, Math.max(0.5, kBarWidth * share), 10]);
      return rectangle([...box], fill, { line: i }) + label(text, kBarsFrom + kBarWidth + 10, y, { fill: faint });
    });
    return label(name, kBarsFrom - 10, middle, { anchor: 'end' }) + texts.join('');
  });
  const end = top + lines.length * high;
  return {
    ...{ width: kWidth, height: end + kMargin + (note ? 16 : 0) },
    body:
      label(title, kMargin, kMargin + 6, { bold: true }) +
      body.join('') +
      (note ? label(note, kMargin, end + 8, { fill: faint }) : ''),
  };
}

/** @param {Given} given @returns {Drawing} */
export function drawRow(given) {
  const { rows, values } = rowValues(given);
  const { run, view } = given.shown;
  const { accent, arc } = themeColors();
  const most = values.reduce((largest, value) => Math.max(largest, Math.abs(value) || 0), 0) || 1;
  const lines = Array.from(values, (value, i) => ({
    name: `${i} ${run.tokens[i]}`,
    bars: [{ share: Math.abs(value) / most, text: formatValue(view.show, value), fill: value < 0 ? arc : accent }],
  })).filter((_, i) => !Number.isNaN(values[i]));
  const what =
    rows.length > 1 ? `${given.state.add} of rows ${rows.join(', ')}` : `row ${rows[0]} “${run.tokens[rows[0]]}”`;
  return listOf(`${viewName(view, run)} · ${what}`, lines);
}

/** @param {Given} given @returns {Drawing} */
export function drawNext({ shown: { run, candidates, nextRow } }) {
  const { accent, bar } = themeColors();
  const lines = candidates.map(({ token, before, after }) => ({
    name: token,
    bars: [
      ...(run.changed ? [{ share: before, text: formatPercent(before), fill: bar }] : []),
      { share: after, text: formatPercent(after), fill: accent },
    ],
  }));
  const title = `Next token after ${nextRow} “${run.tokens[nextRow]}”`;
  return listOf(title, lines, run.changed ? 'Above: as trained. Below: as it was changed.' : '');
}

/** @param {Given} given @returns {Drawing} */
export function drawLens({ state, shown: { run }, lens }) {
  const { accent, faint } = themeColors();
  const [first, wide, high] = [kMargin + 90, 112, 22];
  const final = lens.at(-1)?.tokens[0]?.id;
  const lines = lens.map(({ layer, tokens }, i) => {
    const y = kMargin + 40 + i * high;
    const cells = tokens.map(({ id, token, probability }, j) => {
      const x = first + j * wide;
      const isFinal = id === final;
      return (
        label(token, x, y, { bold: isFinal, ...(isFinal && { fill: accent }) }) +
        label(formatPercent(probability), x + wide - 12, y, { anchor: 'end', fill: faint })
      );
    });
    return label(layer === 0 ? 'embedding' : `layer ${layer - 1}`, kMargin, y, { fill: faint }) + cells.join('');
  });
  return {
    width: first + wide * (lens[0]?.tokens.length ?? 1) + kMargin,
    height: kMargin * 2 + 32 + lens.length * high,
    body:
      label(
        `Next token, if the model ended there, after ${state.focus.row} “${run.tokens[state.focus.row]}”`,
        kMargin,
        kMargin + 6,
        { bold: true },
      ) + lines.join(''),
  };
}
