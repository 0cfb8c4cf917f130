// Draws a matrix on a canvas, and the marks over it.

import { pooled } from '../engine/matrix.js';
import { visibleKeys } from '../engine/rules.js';
import { inkOn, stepOf } from '../scale.js';
import { kLabelGap, kLineHeight, labelFont } from './map-layout.js';

/** @import { Scale } from '../scale.js' */
/** @import { Matrix } from '../types.js' */
/** @import { Layout } from './map-layout.js' */
/** @import { Colors } from './theme-colors.js' */
/**
 * @typedef {object} Picture
 * @property {Matrix} matrix
 * @property {Scale} scale
 * @property {(row: number) => number} highest what the upper end of the scale stands for in a row
 * @property {(value: number) => string} format
 * @property {Colors} colors
 */

/** Below this a gap between cells would cost more than it tells. */
const kGapFrom = 9;
const kNumbersFrom = 34;

/**
 * Sizes a canvas for the screen's pixels and clears it.
 * @param {HTMLCanvasElement} canvas @param {{ width: number, height: number }} size
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

/** @param {HTMLCanvasElement} canvas @param {Layout} layout @param {Picture} picture */
export function drawMap(canvas, layout, picture) {
  const context = begin(canvas, layout);
  const { part, cell, high } = layout;
  if (part.rows * part.columns === 0) return;
  if (Math.min(cell, high) >= kGapFrom) drawCells(context, layout, picture);
  else drawPixels(context, layout, picture);
  hatch(context, layout, picture);
  context.fillStyle = picture.colors.faint;
  const every = (/** @type {number} */ size) => Math.ceil((kLineHeight - 1) / size);
  for (let i = 0; i < part.rows; i += every(high)) drawRowLabel(context, layout, part.row + i);
  for (let i = 0; i < part.columns; i += every(cell)) drawColumnLabel(context, layout, part.column + i);
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Picture} picture */
function drawCells(context, { part, left, top, cell, high }, { matrix, scale, highest, format }) {
  const withNumbers = cell >= kNumbersFrom;
  if (withNumbers) context.font = labelFont(11);
  context.textAlign = 'center';
  for (let i = 0; i < part.rows; i++) {
    const row = part.row + i;
    const limit = highest(row);
    for (let j = 0; j < part.columns; j++) {
      const value = matrix.data[(row - matrix.from) * matrix.columns + part.column + j];
      if (Number.isNaN(value)) continue;
      const step = stepOf(scale, value, limit);
      context.fillStyle = scale.colors[step];
      context.fillRect(left + j * cell, top + i * high, cell - 1, high - 1);
      if (!withNumbers) continue;
      context.fillStyle = inkOn(scale, step);
      context.fillText(format(value), left + (j + 0.5) * cell, top + (i + 0.5) * high);
    }
  }
  context.font = labelFont();
}

/** Small cells without gaps, in one go; where they are smaller than pixels, the largest of them. @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Picture} picture */
function drawPixels(context, { part, left, top, cell, high }, picture) {
  const { matrix } = picture;
  const ratio = window.devicePixelRatio || 1;
  const isWhole = part.rows === matrix.columns - matrix.from && part.columns === matrix.columns;
  const values = isWhole ? matrix.data : cut(matrix, part);
  const tall = Math.max(1, Math.min(part.rows, Math.round(part.rows * high * ratio)));
  const wide = Math.max(1, Math.min(part.columns, Math.round(part.columns * cell * ratio)));
  const image = imageOf(pooled(values, part.columns, tall, wide), wide, picture.scale, (row) =>
    picture.highest(part.row + Math.floor((row * part.rows) / tall)),
  );
  context.imageSmoothingEnabled = false;
  context.drawImage(image, left, top, cell * part.columns, high * part.rows);
}

/** @param {Matrix} matrix @param {import('./map-layout.js').Part} part */
export function cut({ data, from, columns }, part) {
  const values = new Float32Array(part.rows * part.columns);
  for (let i = 0; i < part.rows; i++) {
    const first = (part.row + i - from) * columns + part.column;
    values.set(data.subarray(first, first + part.columns), i * part.columns);
  }
  return values;
}

/**
 * Values as pixels, one each; nothing where there is no number.
 * @param {Float32Array} values @param {number} wide @param {Scale} scale @param {(row: number) => number} highest
 */
export function imageOf(values, wide, scale, highest) {
  const tall = values.length / wide;
  const pixels = new Uint32Array(values.length);
  for (let row = 0, i = 0; row < tall; row++) {
    const limit = highest(row);
    for (let column = 0; column < wide; column++, i++) {
      const value = values[i];
      if (!Number.isNaN(value)) pixels[i] = scale.pixels[stepOf(scale, value, limit)];
    }
  }
  const canvas = new OffscreenCanvas(wide, tall);
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), wide, tall), 0, 0);
  return canvas;
}

/** Slanted lines where a rule hides the key. @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Picture} picture */
function hatch(context, { part, left, top, cell, high }, { matrix: { rule, columns }, colors }) {
  const step = 6;
  const [width, height] = [part.columns * cell, part.rows * high];
  context.save();
  context.beginPath();
  for (let i = 0; i < part.rows; i++) {
    const [first, last] = visibleKeys(rule, part.row + i, columns);
    const before = Math.max(0, Math.min(part.columns, first - part.column));
    const after = Math.max(0, Math.min(part.columns, last + 1 - part.column));
    if (before > 0) context.rect(left, top + i * high, before * cell, high);
    if (after < part.columns) context.rect(left + after * cell, top + i * high, (part.columns - after) * cell, high);
  }
  context.clip();
  context.beginPath();
  for (let x = -height; x < width; x += step) {
    context.moveTo(left + x, top + height);
    context.lineTo(left + x + height, top);
  }
  context.strokeStyle = colors.line;
  context.lineWidth = 1;
  context.stroke();
  context.restore();
}

/** The middle of a row's label: inside the canvas, also where the last rows are lower than letters. @param {Layout} layout @param {number} row */
const labelHeight = ({ part, top, high, height }, row) =>
  Math.min(top + (row - part.row + 0.5) * high, height - kLineHeight / 2);

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {number} row */
function drawRowLabel(context, layout, row) {
  context.textAlign = 'right';
  context.fillText(layout.labels[row], layout.left - kLabelGap, labelHeight(layout, row));
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {number} column */
function drawColumnLabel(context, { part, labels, left, top, cell, upright }, column) {
  context.save();
  context.translate(left + (column - part.column + 0.5) * cell, top - kLabelGap);
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
  const { part, left, top, cell, high, labels } = layout;
  const i = row - part.row;
  const j = column - part.column;
  if (i < 0 || i >= part.rows) return;
  const gap = Math.min(cell, high) >= kGapFrom ? 1 : 0;
  const y = top + i * high;
  frame(context, [left, y, cell * part.columns - gap, high - gap], 1, colors);
  context.font = `600 ${labelFont()}`;
  context.fillStyle = colors.ground;
  const half = Math.max(high, kLineHeight) / 2;
  context.fillRect(0, labelHeight(layout, row) - half, left - 1, half * 2);
  context.fillStyle = colors.accent;
  drawRowLabel(context, layout, row);
  if (j < 0 || j >= part.columns) return;
  frame(context, [left + j * cell, y, cell - gap, high - gap], locked ? 3 : 2, colors);
  const textWidth = Math.min(left, context.measureText(labels[column]).width + kLabelGap * 2);
  const x = left + (j + 0.5) * cell;
  const across = layout.upright ? Math.max(cell, kLineHeight) / 2 : textWidth / 2;
  context.fillStyle = colors.ground;
  context.fillRect(x - across, 0, across * 2, top - 1);
  context.fillStyle = colors.accent;
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
