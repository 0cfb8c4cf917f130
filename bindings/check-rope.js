// Turns a call of rope or ropeTables into one plain, complete description.

import {
  flag,
  integer,
  integers,
  isAbsent,
  isList,
  operand,
  optionsOf,
  outputOf,
  product,
  sameShape,
  typedArrayName,
} from './check.js';
import { axesOf, layoutOf } from './check-attention.js';
import { refuse } from './errors.js';
import { ropeConfig, sequenceLengthOf } from './rope-config.js';

/** @import { Context, Operand, Output } from './check.js' */
/** @import { Axes, Strides } from './check-attention.js' */
/** @import { RopeConfig } from './rope-config.js' */
/** @import { Positions, RopeTables, Tables } from './rope-tables.js' */

/**
 * @typedef {object} RopeCall
 * @property {string} fn
 * @property {number} B @property {number} H @property {number} T @property {number} D
 * @property {number} rotary
 * @property {number} style as `RopeStyle` of attention.h
 * @property {Operand} x @property {Output} out
 * @property {Strides} strides of x and out
 * @property {Float32Array} cos @property {Float32Array} sin
 * @property {number} tableBatch
 */

const kConfig = ['rotaryDim', 'base', 'scaling', 'maxPositionEmbeddings', 'sequenceLength'];
const kMrope = ['mropeSection', 'mropeInterleaved'];
/** What tables come from; those that a caller brings take its place. */
const kSources = [...kConfig, 'positions', 'offset', ...kMrope];
const kOptions = ['style', ...kSources, 'tables', 'inverse', 'out', 'layout'];
const kTables = ['cos', 'sin'];
const kTableOptions = [...kConfig, 'positions', 'offset', 'length', ...kMrope];
/** Positions that float64 holds exactly. */
const kMost = Number.MAX_SAFE_INTEGER;

/**
 * @param {Context} context @param {RopeTables} cache @param {unknown} x @param {unknown} given the options
 * @returns {RopeCall}
 */
export function describeRope(context, cache, x, given) {
  const { fn } = context;
  const options = optionsOf(fn, given, kOptions);
  const source = operand(context, 'x', x);
  const layout = layoutOf(fn, options.layout, source);
  const sizes = axesOf(fn, 'x', source, layout);
  const style = styleOf(fn, options.style);
  const hasTables = !isAbsent(options.tables);
  const rotation = hasTables ? null : describeRotation(fn, options, sizes.D, sizes.B, sizes.T);
  const inverse = flag(fn, 'inverse', options.inverse, false);
  // x itself may be `out`: each element is read before it is written.
  const out = outputOf(context, options.out, source.shape, source, []);
  if (out.dtype !== source.dtype)
    refuse('INVALID_DTYPE', fn, `out must have the type of x, ${source.dtype}`, out.dtype);
  if (rotation) return ropeCall(fn, sizes, style, rotation, rotate(cache, rotation, inverse), source, out);
  const own = tablesOf(context, options, sizes);
  return ropeCall(fn, sizes, style, own, inverse ? turnedBack(own.tables) : own.tables, source, out);
}

/**
 * Tables that the caller brings: [T, d/2], or [B, T, d/2] with a table for each item.
 * @param {Context} context @param {Record<string, any>} options @param {Axes} sizes
 * @returns {Turning & { tables: Tables }}
 */
function tablesOf(context, options, { B, T, D }) {
  const { fn } = context;
  for (const name of kSources) {
    const value = options[name];
    if (!isAbsent(value)) refuse('INVALID_OPTION', fn, `${name} must not be given beside tables`, value);
  }
  const given = optionsOf(`${fn}: tables`, options.tables, kTables);
  const cos = operand(context, 'tables.cos', given.cos);
  const sin = operand(context, 'tables.sin', given.sin);
  const pairs = cos.shape[cos.shape.length - 1];
  const fits = sameShape(cos.shape, [T, pairs]) || sameShape(cos.shape, [B, T, pairs]);
  if (!fits || pairs < 1 || 2 * pairs > D) {
    const rule = `tables.cos must have shape [T, d/2] or [B, T, d/2] with T = ${T}, B = ${B} and d of 2 to ${D}`;
    refuse('INVALID_SHAPE', fn, rule, cos.shape);
  }
  if (!sameShape(sin.shape, cos.shape))
    refuse('INVALID_SHAPE', fn, 'tables.sin must have the shape of tables.cos', sin.shape);
  for (const { dtype } of [cos, sin])
    if (dtype !== 'float32') refuse('INVALID_DTYPE', fn, 'tables must be float32', dtype);
  return {
    config: { rotaryDim: 2 * pairs },
    positions: { items: cos.shape.length === 3 ? B : 1 },
    tables: { cos: given.cos.data, sin: given.sin.data },
  };
}

/** The transpose of a rotation. @param {Tables} tables @returns {Tables} */
const turnedBack = ({ cos, sin }) => ({ cos, sin: sin.map((value) => -value) });

/**
 * @param {string} fn @param {Axes} sizes @param {number} style @param {Turning} rotation @param {Tables} tables
 * @param {Operand} x @param {Output} out
 * @returns {RopeCall}
 */
export function ropeCall(fn, { B, H, T, D, strides }, style, { config, positions }, { cos, sin }, x, out) {
  const tableBatch = positions.items === 1 ? 0 : (T * config.rotaryDim) / 2;
  return { fn, B, H, T, D, rotary: config.rotaryDim, style, x, out, strides, cos, sin, tableBatch };
}

/** @param {string} fn @param {unknown} value as `RopeStyle` of attention.h */
export function styleOf(fn, value) {
  if (value !== 'interleaved' && value !== 'half') {
    refuse('INVALID_OPTION', fn, `style must be 'interleaved' (pairs 2i, 2i+1) or 'half' (pairs i, i+d/2)`, value);
  }
  return value === 'half' ? 1 : 0;
}

/** What a call needs to know of a rotation. @typedef {{ config: { rotaryDim: number }, positions: { items: number } }} Turning */

/**
 * @typedef {object} Rotation
 * @property {RopeConfig} config
 * @property {Positions} positions
 * @property {Uint8Array | null} streams
 * @property {number | null} sequenceLength
 */

/**
 * @param {string} fn @param {Record<string, any>} options @param {number | null} D @param {number} B @param {number} T
 * @returns {Rotation}
 */
export function describeRotation(fn, options, D, B, T) {
  const config = ropeConfig(fn, options, D);
  const sections = sectionsOf(fn, options, config);
  return {
    config,
    positions: positionsOf(fn, options, B, T, sections ? sections.count : 0),
    streams: sections?.streams ?? null,
    sequenceLength: sequenceLengthOf(fn, options.sequenceLength),
  };
}

/**
 * The tables of a rotation. The inverse turns the other way by the same factor: it is the transpose.
 * @param {RopeTables} cache @param {Rotation} rotation @param {boolean} inverse
 * @returns {Tables}
 */
export function rotate(cache, { config, positions, streams, sequenceLength }, inverse) {
  const tables = cache.get(config, positions, streams, sequenceLength);
  return inverse ? turnedBack(tables) : tables;
}

/**
 * @param {string} fn @param {unknown} given the options
 * @returns {{ rotation: Rotation, shape: number[] }}
 */
export function describeTables(fn, given) {
  const options = optionsOf(fn, given, kTableOptions);
  const { positions, length } = options;
  const hasPositions = !isAbsent(positions);
  if (hasPositions === !isAbsent(length)) {
    refuse('INVALID_OPTION', fn, 'either positions or length must be given', length);
  }
  const shape = hasPositions ? positionShape(fn, positions) : [integer(fn, 'length', length, 0, kMost)];
  const T = shape[shape.length - 1];
  const hasSections = sectionOption(options) !== undefined;
  const B = shape.length > 1 + Number(hasSections && shape.length > 1) ? shape[shape.length - 2] : 1;
  const rotation = describeRotation(fn, options, null, B, T);
  const pairs = rotation.config.rotaryDim / 2;
  return { rotation, shape: rotation.positions.items === 1 && B === 1 ? [T, pairs] : [B, T, pairs] };
}

/** @param {string} fn @param {any} positions @returns {number[]} */
function positionShape(fn, positions) {
  if (isList(positions)) return [/** @type {any} */ (positions).length];
  const shape = positions?.shape;
  if (!Array.isArray(shape) || shape.length < 1 || shape.length > 3) {
    refuse('INVALID_SHAPE', fn, 'positions must be a list of integers or { data, shape } of rank 1, 2 or 3', positions);
  }
  return shape;
}

/** @param {Record<string, any>} options */
const sectionOption = (options) => options.mropeSection ?? options.scaling?.mrope_section ?? undefined;

/**
 * Multimodal sections: which position stream each pair takes.
 * @param {string} fn @param {Record<string, any>} options @param {RopeConfig} config
 * @returns {{ count: number, streams: Uint8Array } | null}
 */
function sectionsOf(fn, options, { rotaryDim, scaling }) {
  const given = sectionOption(options);
  const interleaved = flag(fn, 'mropeInterleaved', options.mropeInterleaved ?? scaling.mrope_interleaved, false);
  if (given === undefined) {
    if (interleaved) refuse('INVALID_OPTION', fn, 'mropeInterleaved must come with mropeSection', true);
    if (scaling.type === 'mrope')
      refuse('INVALID_OPTION', fn, `scaling of type 'mrope' must have mrope_section`, scaling);
    return null;
  }
  const pairs = rotaryDim / 2;
  const section = integers(fn, 'mropeSection', given, -1, 0, pairs);
  const sum = section.reduce((a, b) => a + b, 0);
  if (section.length < 3 || section.length > 4 || sum !== pairs) {
    refuse('INVALID_SHAPE', fn, `mropeSection must be 3 or 4 numbers of pairs with sum rotaryDim/2 = ${pairs}`, given);
  }
  if (interleaved && section.length !== 3) {
    refuse('INVALID_SHAPE', fn, 'mropeSection must have 3 numbers when interleaved', given);
  }
  const streams = interleaved ? interleavedStreams(section, pairs) : sectionedStreams(section, pairs);
  return { count: section.length, streams };
}

/** Pairs 0 … s₀−1 take stream 0, the next s₁ stream 1, and so on. @param {Int32Array} section @param {number} pairs */
function sectionedStreams(section, pairs) {
  const streams = new Uint8Array(pairs);
  let at = 0;
  section.forEach((size, stream) => {
    streams.fill(stream, at, at + size);
    at += size;
  });
  return streams;
}

/** Pair i takes height where i mod 3 = 1, width where i mod 3 = 2, as long as those last; else time. @param {Int32Array} section @param {number} pairs */
function interleavedStreams([, height, width], pairs) {
  return Uint8Array.from({ length: pairs }, (_, i) =>
    i % 3 === 1 && i < 3 * height ? 1 : i % 3 === 2 && i < 3 * width ? 2 : 0,
  );
}

/**
 * @param {string} fn @param {Record<string, any>} options @param {number} B @param {number} T
 * @param {number} streams 0: no multimodal sections
 * @returns {Positions}
 */
function positionsOf(fn, options, B, T, streams) {
  const { positions, offset } = options;
  if (isAbsent(positions)) return offsets(fn, offset, B, T);
  if (!isAbsent(offset)) {
    refuse('INVALID_OPTION', fn, 'offset must not be given beside positions', offset);
  }
  const isBare = isList(positions);
  const data = isBare ? positions : positions?.data;
  const shape = isBare ? [T] : positionShape(fn, positions);
  const count = product(shape);
  const at = wideIntegers(fn, data, count);
  const fits = streams === 0 ? [[T], [B, T]] : [[T], [streams, T], [streams, B, T]];
  const form = fits.findIndex((fit) => fit.length === shape.length && fit.every((size, i) => size === shape[i]));
  if (form < 0) {
    const forms = fits.map((fit) => `[${fit.join(', ')}]`).join(' or ');
    refuse('INVALID_SHAPE', fn, `positions must have shape ${forms}`, shape);
  }
  const items = shape.length === (streams === 0 ? 2 : 3) ? B : 1;
  const perStream = streams !== 0 && shape.length > 1 ? items * T : 0;
  return {
    items,
    T,
    isRange: false,
    at: (stream, item, t) => at[stream * perStream + (items === 1 ? 0 : item * T) + t],
  };
}

/** @param {string} fn @param {unknown} offset @param {number} B @param {number} T @returns {Positions} */
function offsets(fn, offset, B, T) {
  if (isAbsent(offset) || typeof offset === 'number') {
    const start = integer(fn, 'offset', offset ?? 0, -kMost, kMost);
    return { items: 1, T, isRange: true, at: (_stream, _item, t) => start + t };
  }
  const starts = integers(fn, 'offset', offset, B, -(2 ** 31), 2 ** 31 - 1);
  return { items: B, T, isRange: B === 1, at: (_stream, item, t) => starts[item] + t };
}

/**
 * Positions may be larger than 32-bit integers.
 * @param {string} fn @param {any} data @param {number} count
 * @returns {ArrayLike<number>}
 */
function wideIntegers(fn, data, count) {
  const kind = typedArrayName(data);
  if (!Array.isArray(data) && !/^(Int|Uint)(8|16|32)Array$/.test(kind)) {
    refuse('INVALID_DTYPE', fn, 'positions must hold integers (an array or an integer typed array)', data);
  }
  if (data.length !== count) refuse('INVALID_SHAPE', fn, `positions must have ${count} elements`, data.length);
  for (let i = 0; i < count; ++i) integer(fn, `positions[${i}]`, data[i], -kMost, kMost);
  return data;
}
