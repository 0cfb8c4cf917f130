// One map of weights on a canvas: rows ask, columns are asked. Geometry, drawing, and the cell under a point; no state.
import { cssColor, inkOn, kColors, stepOf } from '../scale.js';

/**
 * @typedef {object} Layout
 * @property {string[]} labels one for each token, shortened
 * @property {number} width @property {number} height of the canvas, in CSS pixels
 * @property {number} left @property {number} top where the cells begin
 * @property {number} cell side of a cell
 * @property {boolean} upright whether the column labels stand (they lie where there is room)
 * @property {number} every a label at each so many tokens
 */
/** @typedef {{ ink: string, faint: string, line: string, ground: string, accent: string }} Colors */

const kFontSize = 12;
const kLineHeight = 14;
const kLabelGap = 6;
const kLongestLabel = 12;
const kLargestCell = 64;
/** Below this a gap between cells would cost more than it tells. */
const kGapFrom = 9;
const kNumbersFrom = 34;

/** @param {number} size */
export const labelFont = (size = kFontSize) => `${size}px system-ui, sans-serif`;

/** @param {string} token */
function shorten(token) {
  const signs = Array.from(token);
  return signs.length > kLongestLabel ? `${signs.slice(0, kLongestLabel - 1).join('')}…` : token;
}

/** @param {string[]} labels @param {CanvasRenderingContext2D} context */
function labelSpace(labels, context) {
  context.font = `600 ${labelFont()}`; // as wide as the label of the marked row
  return Math.ceil(Math.max(0, ...labels.map((label) => context.measureText(label).width))) + kLabelGap;
}

/**
 * @param {string[]} tokens @param {number} width room for the map @param {CanvasRenderingContext2D} context
 * @returns {Layout}
 */
export function layOut(tokens, width, context) {
  const labels = tokens.map(shorten);
  const left = labelSpace(labels, context);
  const room = Math.max(1, width - left) / Math.max(1, tokens.length);
  const ratio = window.devicePixelRatio || 1;
  const cell = Math.min(kLargestCell, Math.max(1, Math.floor(room * ratio)) / ratio); // whole pixels of the screen
  const upright = left > cell;
  const top = upright ? left : kLineHeight + kLabelGap;
  const side = cell * tokens.length;
  return {
    ...{ labels, left, top, cell, upright },
    width: Math.ceil(left + side),
    height: Math.ceil(top + side),
    every: Math.ceil((kLineHeight - 1) / cell),
  };
}

/** @param {Layout} layout @param {number} x @param {number} y @returns {{ row: number, column: number } | null} */
export function cellAt(layout, x, y) {
  const column = Math.floor((x - layout.left) / layout.cell);
  const row = Math.floor((y - layout.top) / layout.cell);
  const inside = [row, column].every((index) => index >= 0 && index < layout.labels.length);
  return inside ? { row, column } : null;
}

/**
 * Sizes a canvas for the screen's pixels and clears it.
 * @param {HTMLCanvasElement} canvas @param {Layout} layout
 */
function begin(canvas, { width, height }) {
  const ratio = window.devicePixelRatio || 1;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  const pixels = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) {
    [canvas.width, canvas.height] = pixels; // costly: only when it changes
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = labelFont();
  context.textBaseline = 'middle';
  return context;
}

/**
 * @param {HTMLCanvasElement} canvas @param {Layout} layout
 * @param {{ weights: Float32Array, highest: number, causal: boolean, colors: Colors }} picture weights [T, T]
 */
export function drawMap(canvas, layout, { weights, highest, causal, colors }) {
  const context = begin(canvas, layout);
  const count = layout.labels.length;
  if (layout.cell >= kGapFrom) drawCells(context, layout, weights, highest, causal);
  else drawPixels(context, layout, weights, highest, causal);
  if (causal) hatch(context, layout, colors);
  context.fillStyle = colors.faint;
  for (let i = 0; i < count; i += layout.every) {
    drawRowLabel(context, layout, i);
    drawColumnLabel(context, layout, i);
  }
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Float32Array} weights @param {number} highest @param {boolean} causal */
function drawCells(context, { left, top, cell, labels }, weights, highest, causal) {
  const count = labels.length;
  const withNumbers = cell >= kNumbersFrom;
  if (withNumbers) context.font = labelFont(11);
  context.textAlign = 'center';
  for (let row = 0; row < count; row++) {
    for (let column = 0; column < (causal ? row + 1 : count); column++) {
      const weight = weights[row * count + column];
      const step = stepOf(weight, highest);
      context.fillStyle = cssColor(step);
      context.fillRect(left + column * cell, top + row * cell, cell - 1, cell - 1);
      if (!withNumbers) continue;
      context.fillStyle = inkOn(step);
      context.fillText(weight.toFixed(2), left + column * cell + cell / 2, top + row * cell + cell / 2);
    }
  }
  context.font = labelFont();
}

/** Small cells without gaps, in one go. @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Float32Array} weights @param {number} highest @param {boolean} causal */
function drawPixels(context, { left, top, cell, labels }, weights, highest, causal) {
  const count = labels.length;
  if (count === 0) return;
  const image = new ImageData(count, count);
  for (let row = 0; row < count; row++) {
    for (let column = 0; column < count; column++) {
      const index = row * count + column;
      image.data.set(kColors[stepOf(weights[index], highest)], index * 4);
      image.data[index * 4 + 3] = causal && column > row ? 0 : 255;
    }
  }
  const small = new OffscreenCanvas(count, count);
  /** @type {OffscreenCanvasRenderingContext2D} */ (small.getContext('2d')).putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, left, top, cell * count, cell * count);
}

/** Slanted lines where the causal mask hides the key. @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Colors} colors */
function hatch(context, { left, top, cell, labels }, colors) {
  const count = labels.length;
  const side = count * cell;
  const step = 6;
  context.save();
  context.beginPath();
  for (let row = 0; row < count - 1; row++) {
    context.rect(left + (row + 1) * cell, top + row * cell, side - (row + 1) * cell, cell);
  }
  context.clip();
  context.beginPath();
  for (let x = -side; x < side; x += step) {
    context.moveTo(left + x, top + side);
    context.lineTo(left + x + side, top);
  }
  context.strokeStyle = colors.line;
  context.lineWidth = 1;
  context.stroke();
  context.restore();
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {number} row */
function drawRowLabel(context, { labels, left, top, cell }, row) {
  context.textAlign = 'right';
  context.fillText(labels[row], left - kLabelGap, top + row * cell + cell / 2);
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {number} column */
function drawColumnLabel(context, { labels, left, top, cell, upright }, column) {
  const x = left + column * cell + cell / 2;
  context.save();
  context.translate(x, top - kLabelGap);
  if (upright) context.rotate(-Math.PI / 2);
  context.textAlign = upright ? 'left' : 'center';
  context.fillText(labels[column], 0, upright ? 0 : -kLineHeight / 2 + kLabelGap / 2);
  context.restore();
}

/**
 * The marks over a map: the row that is spoken of, its cell, and their two labels.
 * @param {HTMLCanvasElement} canvas @param {Layout} layout
 * @param {{ row: number, column: number, locked: boolean, colors: Colors }} mark
 */
export function drawMark(canvas, layout, { row, column, locked, colors }) {
  const context = begin(canvas, layout);
  const { left, top, cell, labels } = layout;
  if (labels.length === 0) return;
  const gap = cell >= kGapFrom ? 1 : 0;
  const y = top + row * cell;
  frame(context, [left, y, cell * labels.length - gap, cell - gap], 1, colors);
  frame(context, [left + column * cell, y, cell - gap, cell - gap], locked ? 3 : 2, colors);
  context.font = `600 ${labelFont()}`;
  const textWidth = (/** @type {number} */ i) => Math.min(left, context.measureText(labels[i]).width + kLabelGap * 2);
  context.fillStyle = colors.ground;
  const half = Math.max(cell, kLineHeight) / 2;
  context.fillRect(0, y + cell / 2 - half, left - 1, half * 2);
  const x = left + column * cell + cell / 2;
  const across = layout.upright ? half : textWidth(column) / 2;
  context.fillRect(x - across, 0, across * 2, top - 1);
  context.fillStyle = colors.accent;
  drawRowLabel(context, layout, row);
  drawColumnLabel(context, layout, column);
}

/**
 * A frame around a box, with a thin line of the ground outside it, so that it shows on every colour.
 * @param {CanvasRenderingContext2D} context @param {[number, number, number, number]} box @param {number} thickness @param {Colors} colors
 */
function frame(context, [x, y, width, height], thickness, colors) {
  for (const [color, grow, line] of /** @type {[string, number, number][]} */ ([
    [colors.ground, thickness + 0.5, 1],
    [colors.accent, thickness / 2, thickness],
  ])) {
    context.strokeStyle = color;
    context.lineWidth = line;
    context.strokeRect(x - grow, y - grow, width + 2 * grow, height + 2 * grow);
  }
}
