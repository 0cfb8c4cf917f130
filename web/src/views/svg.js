// What is shown, as a drawing for a paper: standalone SVG in the colours of the page.

import { largest } from '../engine/matrix.js';
import { scaleFor, stepOf } from '../scale.js';
import { allHeads, headName } from '../state.js';
import { rowValues } from './exports.js';
import { highestOf } from './focus-map.js';
import { formatPercent } from './format.js';
import { imageOf } from './heat-map.js';
import { layOut, partOf } from './map-layout.js';
import { themeColors } from './theme-colors.js';
import { heaviest } from './token-strip.jsx';
import { formatValue, kQuantities, viewName } from './words.js';

/** @import { Given, Kind } from './exports.js' */
/** @typedef {{ width: number, height: number, body: string }} Drawing */

const kWidth = 720;
const kMargin = 16;
const kHead = 52;
const kMostCells = 6000;

/** @param {string} text */
const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** @param {number} value */
const short = (value) => String(Math.round(value * 100) / 100);

/**
 * @param {string} text @param {number} x @param {number} y @param {{ anchor?: string, fill?: string, turn?: boolean,
 *   size?: number, bold?: boolean }} [how]
 */
function label(text, x, y, { anchor = 'start', fill = themeColors().ink, turn = false, size = 12, bold = false } = {}) {
  const turned = turn ? ` transform="rotate(-90 ${short(x)} ${short(y)})"` : '';
  const weight = bold ? ' font-weight="600"' : '';
  return `<text x="${short(x)}" y="${short(y)}" font-size="${size}" text-anchor="${anchor}" fill="${fill}" dominant-baseline="central"${weight}${turned}>${escaped(text)}</text>`;
}

/** @param {Kind} kind @param {Given} given @returns {string} */
export function svgOf(kind, given) {
  const { width, height, body } = drawings[kind](given);
  const { ground } = themeColors();
  const size = `width="${short(width)}" height="${short(height)}" viewBox="0 0 ${short(width)} ${short(height)}"`;
  const rest = `font-family="system-ui, sans-serif" style="background: ${ground}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${rest}><rect width="100%" height="100%" fill="${ground}"/>${body}</svg>`;
}

/** @type {Record<Kind, (given: Given) => Drawing>} */
const drawings = { matrix: drawMatrix, row: drawRow, heads: drawHeads, tokens: drawTokens, next: drawNext };

/** Title, and the scale with a number at each end. @param {Given} given @param {number} width */
function head({ state, shown: { matrix, view, run } }, width) {
  const scale = scaleFor(view.show);
  const highest = highestOf(state, matrix, view.show)(Math.max(matrix.from, state.focus.row));
  const stops = Array.from({ length: 17 }, (_, i) => {
    const color = scale.colors[Math.round((i / 16) * 255)];
    return `<stop offset="${i / 16}" stop-color="${color}"/>`;
  }).join('');
  const { faint } = themeColors();
  const low = scale.isDiverging ? formatValue(view.show, -highest) : '0';
  const y = kMargin + 26;
  return (
    `<defs><linearGradient id="ramp">${stops}</linearGradient></defs>` +
    label(viewName(view, run), kMargin, kMargin + 4, { bold: true }) +
    label(kQuantities[view.show], kMargin, y, { fill: faint }) +
    label(low, kMargin + 112, y, { anchor: 'end', fill: faint }) +
    `<rect x="${kMargin + 120}" y="${y - 6}" width="${Math.min(160, width - 240)}" height="12" fill="url(#ramp)"/>` +
    label(formatValue(view.show, highest), kMargin + 128 + Math.min(160, width - 240), y, { fill: faint })
  );
}

/** @param {Given} given @returns {Drawing} */
function drawMatrix(given) {
  const { state, shown } = given;
  const { run, matrix, view } = shown;
  const part = partOf(matrix, state.zoom);
  const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
  const layout = layOut(run.tokens, part, kWidth - 2 * kMargin, ruler);
  const scale = scaleFor(view.show);
  const highest = highestOf(state, matrix, view.show);
  const { faint } = themeColors();
  const [left, top] = [kMargin + layout.left, kHead + layout.top];
  const { cell, high } = layout;
  const cells = [];
  const isFine = part.rows * part.columns > kMostCells;
  for (let i = 0; i < part.rows && !isFine; i++) {
    const row = part.row + i;
    for (let j = 0; j < part.columns; j++) {
      const value = matrix.data[(row - matrix.from) * matrix.columns + part.column + j];
      if (Number.isNaN(value)) continue;
      const fill = scale.colors[stepOf(scale, value, highest(row))];
      const place = `x="${short(left + j * cell)}" y="${short(top + i * high)}" width="${short(cell)}" height="${short(high)}"`;
      cells.push(`<rect ${place} fill="${fill}" data-row="${row}" data-key="${part.column + j}"/>`);
    }
  }
  if (isFine) cells.push(imageElement(given, left, top, cell * part.columns, high * part.rows));
  const every = (/** @type {number} */ size) => Math.ceil(13 / size);
  const labels = [];
  for (let i = 0; i < part.rows; i += every(high)) {
    labels.push(label(layout.labels[part.row + i], left - 6, top + (i + 0.5) * high, { anchor: 'end', fill: faint }));
  }
  for (let j = 0; j < part.columns; j += every(cell)) {
    const text = layout.labels[part.column + j];
    labels.push(
      label(text, left + (j + 0.5) * cell, top - (layout.upright ? 6 : 10), {
        ...{ fill: faint, turn: layout.upright, anchor: layout.upright ? 'start' : 'middle' },
      }),
    );
  }
  const frame = `<rect x="${short(left)}" y="${short(top)}" width="${short(cell * part.columns)}" height="${short(high * part.rows)}" fill="none" stroke="${themeColors().line}"/>`;
  const width = Math.max(420, layout.width + 2 * kMargin);
  return {
    width,
    height: kHead + layout.height + kMargin,
    body: head(given, width) + cells.join('') + labels.join('') + frame,
  };
}

/** A matrix of very many cells, as a picture of one pixel each. @param {Given} given @param {number} x @param {number} y @param {number} width @param {number} height */
function imageElement({ state, shown: { matrix, view } }, x, y, width, height) {
  const part = partOf(matrix, state.zoom);
  const values = new Float32Array(part.rows * part.columns);
  for (let i = 0; i < part.rows; i++) {
    const first = (part.row + i - matrix.from) * matrix.columns + part.column;
    values.set(matrix.data.subarray(first, first + part.columns), i * part.columns);
  }
  const highest = highestOf(state, matrix, view.show);
  const image = imageOf(values, part.columns, scaleFor(view.show), (row) => highest(part.row + row));
  return `<image x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" preserveAspectRatio="none" style="image-rendering: pixelated" href="${dataUrl(image)}"/>`;
}

/** @param {OffscreenCanvas} image */
function dataUrl(image) {
  const canvas = document.createElement('canvas');
  canvas.width = image.width;
  canvas.height = image.height;
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')).drawImage(image, 0, 0);
  return canvas.toDataURL();
}

/** @param {string} title @param {{ name: string, share: number, text: string }[]} lines @returns {Drawing} */
function bars(title, lines) {
  const { faint, accent } = themeColors();
  const body = lines.map(({ name, share, text }, i) => {
    const y = kMargin + 32 + i * 20;
    return (
      label(name, kMargin + 120, y, { anchor: 'end' }) +
      `<rect x="${kMargin + 130}" y="${y - 6}" width="${short(Math.max(0.5, 300 * share))}" height="12" fill="${accent}" data-line="${i}"/>` +
      label(text, kMargin + 440, y, { fill: faint })
    );
  });
  return {
    width: 540,
    height: kMargin * 2 + 28 + lines.length * 20,
    body: label(title, kMargin, kMargin + 6, { bold: true }) + body.join(''),
  };
}

/** @param {Given} given @returns {Drawing} */
function drawRow(given) {
  const { rows, values } = rowValues(given);
  const { run, view } = given.shown;
  const most = values.reduce((largest, value) => Math.max(largest, Math.abs(value) || 0), 0) || 1;
  const lines = Array.from(values, (value, i) => ({ value, i }))
    .filter(({ value }) => !Number.isNaN(value))
    .map(({ value, i }) => ({
      ...{ name: `${i} ${run.tokens[i]}`, share: Math.abs(value) / most, text: formatValue(view.show, value) },
    }));
  const what =
    rows.length > 1 ? `${given.state.add} of rows ${rows.join(', ')}` : `row ${rows[0]} “${run.tokens[rows[0]]}”`;
  return bars(`${viewName(view, run)} · ${what}`, lines);
}

/** @param {Given} given @returns {Drawing} */
function drawNext({ state, shown: { run, candidates } }) {
  const lines = candidates.map(({ token, after }) => ({ name: token, share: after, text: formatPercent(after) }));
  return bars(`Next token after ${state.focus.row} “${run.tokens[state.focus.row]}”`, lines);
}

/** @param {Given} given @returns {Drawing} */
function drawHeads({ state, shown: { run, thumbnails } }) {
  const [size, gap] = [96, 24];
  const { faint } = themeColors();
  const scale = scaleFor('weights');
  const body = allHeads(run).map(([layer, number]) => {
    const part = thumbnails[layer];
    const x = kMargin + number * (size + 8);
    const y = kMargin + 24 + layer * (size + gap);
    const name = label(headName([layer, number]), x, y + size + 10, { fill: faint });
    if (!part) return name;
    const { side, data } = part;
    const tiles = data.subarray(number * side * side, (number + 1) * side * side);
    const highest = (/** @type {number} */ row) =>
      state.range === 'row' ? largest(tiles.subarray(row * side, (row + 1) * side)) : 1;
    const href = dataUrl(imageOf(tiles, side, scale, highest));
    return `${name}<image x="${x}" y="${y}" width="${size}" height="${size}" style="image-rendering: pixelated" href="${href}"/>`;
  });
  const title = label(`${run.layers} layers of ${run.heads} heads, ${run.tokens.length} tokens`, kMargin, kMargin + 6, {
    bold: true,
  });
  return {
    ...{
      width: Math.max(360, 2 * kMargin + run.heads * (size + 8)),
      height: 2 * kMargin + 24 + run.layers * (size + gap),
    },
    body: title + body.join(''),
  };
}

/** @param {Given} given @returns {Drawing} */
function drawTokens({ state, shown: { run, matrix, view } }) {
  const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
  ruler.font = '13px system-ui, sans-serif';
  const { accent, faint } = themeColors();
  const y = 150;
  let x = kMargin;
  const centers = run.tokens.map((token) => {
    const width = ruler.measureText(token).width + 10;
    x += width;
    return x - width / 2;
  });
  const { row } = state.focus;
  const arcs = heaviest(matrix, row, state.arcs);
  const largest = arcs.reduce((most, { value }) => Math.max(most, Math.abs(value)), 0) || 1;
  const body = arcs.map(({ column, value }) => {
    const share = view.show === 'weights' ? Math.min(1, value) : Math.abs(value) / largest;
    const [from, to] = [centers[row], centers[column]];
    const rise = Math.min(96, 20 + Math.abs(from - to) / 6);
    const bend = row === column ? 12 : 0;
    const path = `M${short(from)} ${y - 12} C${short(from - bend)} ${short(y - 12 - rise)} ${short(to + bend)} ${short(y - 12 - rise)} ${short(to)} ${y - 12}`;
    return (
      `<path d="${path}" fill="none" stroke="${accent}" stroke-width="${short(1 + 5 * share)}" stroke-opacity="${short(0.25 + 0.75 * share)}" data-key="${column}"/>` +
      label(formatValue(view.show, value), to, y + 20, { anchor: 'middle', fill: accent, size: 10 })
    );
  });
  const tokens = run.tokens.map((token, i) =>
    label(token, centers[i], y, {
      anchor: 'middle',
      size: 13,
      fill: i === row ? accent : themeColors().ink,
      bold: i === row,
    }),
  );
  const title = label(
    `${viewName(view, run)} · row ${row} “${run.tokens[row]}”, the ${arcs.length} heaviest`,
    kMargin,
    kMargin + 6,
    { bold: true, fill: faint },
  );
  return { width: Math.max(360, x + kMargin), height: y + 44, body: title + body.join('') + tokens.join('') };
}
