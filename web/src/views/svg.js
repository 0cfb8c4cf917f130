// What is shown, as a drawing for a paper: standalone SVG.
import { largest } from '../engine/matrix.js';
import { visibleKeys } from '../engine/rules.js';
import { scaleFor, stepOf } from '../scale.js';
import { allHeads, headName } from '../state.js';
import { kMargin, label, pixels, ramp, rectangle, short, svgFile } from './drawing.js';
import { highestOf } from './focus-map.js';
import { cut, imageOf } from './heat-map.js';
import { layOut, partOf } from './map-layout.js';
import { dataUrl } from './saving.js';
import { drawLens, drawNext, drawRow } from './svg-lists.js';
import { drawTokens } from './svg-tokens.js';
import { themeColors } from './theme-colors.js';
import { formatValue, kQuantities, viewName } from './words.js';

/** @import { Drawing } from './drawing.js' */
/** @import { Given, Kind } from './exports.js' */
/** @import { Layout } from './map-layout.js' */

const kWidth = 720;
const kHead = 52;
const kMostCells = 6000;

/** @type {Record<Kind, (given: Given) => Drawing | Promise<Drawing>>} */
const drawings = {
  ...{ matrix: drawMatrix, row: drawRow, heads: drawHeads, tokens: drawTokens, next: drawNext, lens: drawLens },
};

/** @param {Kind} kind @param {Given} given @returns {Promise<string>} */
export const svgOf = async (kind, given) => svgFile(await drawings[kind](given));

/** Title and scale. @param {Given} given @param {number} width */
function head({ state, shown: { matrix, view, run } }, width) {
  const { isDiverging } = scaleFor(view.show);
  const row = Math.max(matrix.from, state.focus.row);
  const highest = highestOf(state, matrix, view.show)(row);
  const isByRow = view.show === 'weights' && state.range === 'row';
  const texts = {
    name: kQuantities[view.show],
    low: isDiverging ? formatValue(view.show, -highest) : '0',
    high: isByRow ? `${formatValue(view.show, highest)}, the maximum of row ${row}` : formatValue(view.show, highest),
  };
  return (
    label(viewName(view, run), kMargin, kMargin + 4, { bold: true }) +
    ramp(view.show, texts, kMargin + 26, Math.min(160, width - 240))
  );
}

/** @param {Given} given @returns {Promise<Drawing>} */
async function drawMatrix(given) {
  const { state, shown } = given;
  const { run, matrix, view } = shown;
  const part = partOf(matrix, state.zoom);
  const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
  const layout = layOut(run.tokens, part, kWidth - 2 * kMargin, ruler);
  const [left, top] = [kMargin + layout.left, kHead + layout.top];
  const { cell, high } = layout;
  const box = /** @type {[number, number, number, number]} */ ([left, top, cell * part.columns, high * part.rows]);
  const isFine = part.rows * part.columns > kMostCells;
  const highest = highestOf(state, matrix, view.show);
  const scale = scaleFor(view.show);
  const image = () => imageOf(cut(matrix, part), part.columns, scale, (row) => highest(part.row + row));
  const corner = /** @type {[number, number]} */ ([left, top]);
  const cells = isFine ? pixels(await dataUrl(image()), box) : cellsOf(given, layout, corner);
  const frame = `<rect x="${short(left)}" y="${short(top)}" width="${short(box[2])}" height="${short(box[3])}" fill="none" stroke="${themeColors().line}"/>`;
  const width = Math.max(420, layout.width + 2 * kMargin);
  return {
    width,
    height: kHead + layout.height + kMargin,
    body: head(given, width) + hatchOf(given, layout, corner) + cells + labelsOf(layout, corner) + frame,
  };
}

/** A box for each cell with a number. @param {Given} given @param {Layout} layout @param {[number, number]} corner */
function cellsOf({ state, shown: { matrix, view } }, { part, cell, high }, [left, top]) {
  const scale = scaleFor(view.show);
  const highest = highestOf(state, matrix, view.show);
  const boxes = [];
  for (let i = 0; i < part.rows; i++) {
    const row = part.row + i;
    for (let j = 0; j < part.columns; j++) {
      const key = part.column + j;
      const value = matrix.data[(row - matrix.from) * matrix.columns + key];
      if (Number.isNaN(value)) continue;
      const fill = scale.colors[stepOf(scale, value, highest(row))];
      boxes.push(rectangle([left + j * cell, top + i * high, cell, high], fill, { row, key }));
    }
  }
  return boxes.join('');
}

/** Slanted lines where a rule hides the key, row by row. @param {Given} given @param {Layout} layout @param {[number, number]} corner */
function hatchOf({ shown: { matrix } }, { part, cell, high }, [left, top]) {
  const boxes = [];
  for (let i = 0; i < part.rows; i++) {
    const [first, last] = visibleKeys(matrix.rule, part.row + i, matrix.columns);
    const before = Math.max(0, Math.min(part.columns, first - part.column));
    const after = Math.max(0, Math.min(part.columns, last + 1 - part.column));
    const y = top + i * high;
    if (before > 0) boxes.push(rectangle([left, y, before * cell, high], 'url(#hidden)'));
    if (after < part.columns)
      boxes.push(rectangle([left + after * cell, y, (part.columns - after) * cell, high], 'url(#hidden)'));
  }
  return (
    '<defs><pattern id="hidden" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">' +
    `<path d="M0 0V5" stroke="${themeColors().line}"/></pattern></defs>${boxes.join('')}`
  );
}

/** @param {Layout} layout @param {[number, number]} corner */
function labelsOf({ part, labels, cell, high, upright }, [left, top]) {
  const fill = themeColors().faint;
  const every = (/** @type {number} */ size) => Math.ceil(13 / size);
  const texts = [];
  for (let i = 0; i < part.rows; i += every(high)) {
    texts.push(label(labels[part.row + i], left - 6, top + (i + 0.5) * high, { anchor: 'end', fill }));
  }
  for (let j = 0; j < part.columns; j += every(cell)) {
    const how = { fill, turn: upright, anchor: upright ? 'start' : 'middle' };
    texts.push(label(labels[part.column + j], left + (j + 0.5) * cell, top - (upright ? 6 : 10), how));
  }
  return texts.join('');
}

/** @param {Given} given @returns {Promise<Drawing>} */
async function drawHeads({ state, shown: { run, thumbnails } }) {
  const [size, gap] = [96, 24];
  const { faint } = themeColors();
  const scale = scaleFor('weights');
  const top = kMargin + 48;
  const width = Math.max(420, 2 * kMargin + run.heads * (size + 8));
  const body = [];
  for (const [layer, number] of allHeads(run)) {
    const part = thumbnails[layer];
    const x = kMargin + number * (size + 8);
    const y = top + layer * (size + gap);
    body.push(label(headName([layer, number]), x, y + size + 10, { fill: faint }));
    if (!part) continue;
    const { side, data } = part;
    const tiles = data.subarray(number * side * side, (number + 1) * side * side);
    const highest = (/** @type {number} */ row) =>
      state.range === 'row' ? largest(tiles.subarray(row * side, (row + 1) * side)) : 1;
    body.push(pixels(await dataUrl(imageOf(tiles, side, scale, highest)), [x, y, size, size]));
  }
  const title = `${run.layers} ${run.layers === 1 ? 'layer' : 'layers'} of ${run.heads} heads, ${run.tokens.length} tokens`;
  const high = state.range === 'row' ? 'each row’s maximum' : formatValue('weights', 1);
  const start =
    label(title, kMargin, kMargin + 4, { bold: true }) +
    ramp('weights', { name: kQuantities.weights, low: '0', high }, kMargin + 26, 160);
  return { width, height: top + run.layers * (size + gap) + kMargin, body: start + body.join('') };
}
