// Geometry of a matrix on a canvas: rows ask, columns are asked. No state, no drawing.

/** The part of a matrix that is shown, in tokens. @typedef {{ row: number, rows: number, column: number, columns: number }} Part */
/**
 * @typedef {object} Layout
 * @property {Part} part
 * @property {string[]} labels one for each token, shortened
 * @property {number} width @property {number} height of the canvas, in CSS pixels
 * @property {number} left @property {number} top where the cells begin
 * @property {number} cell width of a cell @property {number} high height of a cell
 * @property {boolean} upright whether the column labels stand (they lie where there is room)
 */

const kFontSize = 12;
export const kLineHeight = 14;
export const kLabelGap = 6;
const kLongestLabel = 12;
const kLargestCell = 64;
/** Few rows below many columns would be too flat to point at. */
const kLeastHeight = 120;
const kHighestFlatRow = 20;

/** @param {number} size */
export const labelFont = (size = kFontSize) => `${size}px system-ui, sans-serif`;

/** @param {string} token */
export function shorten(token) {
  const signs = Array.from(token);
  return signs.length > kLongestLabel ? `${signs.slice(0, kLongestLabel - 1).join('')}…` : token;
}

/**
 * The part of a matrix that a zoom asks for, inside of it.
 * @param {{ from: number, columns: number }} matrix @param {readonly [number, number, number] | null} zoom @returns {Part}
 */
export function partOf({ from, columns }, zoom) {
  if (!zoom) return { row: from, rows: columns - from, column: 0, columns };
  const [row, column, span] = zoom;
  const wide = Math.min(span, columns);
  const high = Math.min(span, columns - from);
  return {
    row: Math.max(from, Math.min(row, columns - high)),
    rows: high,
    column: Math.max(0, Math.min(column, columns - wide)),
    columns: wide,
  };
}

/** @param {string[]} labels @param {CanvasRenderingContext2D} context */
function labelSpace(labels, context) {
  context.font = `600 ${labelFont()}`; // as wide as the label of the marked row
  return Math.ceil(labels.reduce((most, label) => Math.max(most, context.measureText(label).width), 0)) + kLabelGap;
}

/**
 * @param {string[]} tokens @param {Part} part @param {number} width room for the map @param {CanvasRenderingContext2D} context
 * @returns {Layout}
 */
export function layOut(tokens, part, width, context) {
  const labels = tokens.map(shorten);
  const { row, rows, column, columns } = part;
  const shownLabels = new Set([...labels.slice(row, row + rows), ...labels.slice(column, column + columns)]);
  const left = labelSpace([...shownLabels], context);
  const room = Math.max(1, width - left) / Math.max(1, columns);
  const ratio = window.devicePixelRatio || 1;
  const whole = Math.floor(room * ratio) / ratio; // whole pixels of the screen, as long as there is one for each cell
  const cell = Math.min(kLargestCell, whole > 0 ? whole : room);
  const high =
    rows === columns ? cell : Math.max(cell, Math.min(kHighestFlatRow, Math.floor(kLeastHeight / Math.max(1, rows))));
  const upright = left > cell;
  const top = upright ? left : kLineHeight + kLabelGap;
  return {
    ...{ part, labels, left, top, cell, high, upright },
    width: Math.ceil(left + cell * columns),
    height: Math.ceil(top + high * rows),
  };
}

/** @param {Layout} layout @param {number} x @param {number} y @returns {{ row: number, column: number } | null} */
export function cellAt({ part, left, top, cell, high }, x, y) {
  const column = Math.floor((x - left) / cell);
  const row = Math.floor((y - top) / high);
  const isInside = row >= 0 && row < part.rows && column >= 0 && column < part.columns;
  return isInside ? { row: part.row + row, column: part.column + column } : null;
}

/**
 * A zoom by a factor that leaves a cell where it is.
 * @param {Part} part @param {number} total tokens @param {{ row: number, column: number }} cell @param {number} factor above
 *   1: nearer
 * @returns {[number, number, number] | null} null: the whole matrix
 */
export function zoomed(part, total, cell, factor) {
  const span = Math.round(Math.max(part.rows, part.columns) / factor);
  if (span >= total) return null;
  const wanted = Math.max(Math.min(4, total), span);
  const start = (/** @type {number} */ first, /** @type {number} */ count, /** @type {number} */ at) =>
    Math.max(0, Math.min(total - wanted, Math.round(at - (wanted * (at - first)) / Math.max(1, count))));
  return [start(part.row, part.rows, cell.row), start(part.column, part.columns, cell.column), wanted];
}

/** The zoom moved so that a cell is in sight. @param {readonly [number, number, number]} zoom @param {Part} part @param {{ row: number, column: number }} cell @returns {[number, number, number]} */
export function following([, , span], part, { row, column }) {
  const moved = (/** @type {number} */ first, /** @type {number} */ count, /** @type {number} */ at) =>
    at < first ? at : at >= first + count ? at - count + 1 : first;
  return [moved(part.row, part.rows, row), moved(part.column, part.columns, column), span];
}
