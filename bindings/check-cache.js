// The rules of the key/value cache: its sizes, what may be appended, and attention over what it holds.
//
// Tokens are counted from the first one ever appended. A cache with a window is a ring: the first `sinkTokens` rows keep
// the first tokens, token t ≥ sinkTokens stands in row sinkTokens + (t − sinkTokens) mod ringSize, and what a new token
// overwrites is let go. So an item holds, in time order, the first sinkTokens tokens and those from
// sinkTokens + evicted on.
import { integer, integers, isAbsent, kMostElements, operand, optionsOf } from './check.js';
import { axesOf, describeOperands, kOptions, layoutOf } from './check-attention.js';
import { causalOf, lengthsOf, queryOffsetOf, windowOf } from './check-visibility.js';
import { refuse } from './errors.js';

/** @import { AttentionCall, Axes, Strides } from './check-attention.js' */
/** @import { Context, Operand } from './check.js' */
/** @import { Storage } from './tensor.js' */
/** @import { CacheDtype } from './types.js' */

/**
 * @typedef {object} CacheConfig
 * @property {number} B
 * @property {number} Hkv
 * @property {number} D
 * @property {number} Dv
 * @property {number} capacity
 * @property {CacheDtype} dtype
 * @property {number} window 0: none
 * @property {number} sinkTokens
 */

/** What each item holds: tokens ever appended (and not taken back), and those that a ring let go. @typedef {{ positions: Int32Array, evicted: Int32Array }} Held */

/**
 * Where a backend keeps it. Token sizes are in elements, or in bytes for the quantised types.
 * @typedef {Storage & { keys: Storage, values: Storage, keyScales: Storage | null, valueScales: Storage | null,
 *   keyToken: number, valueToken: number, bytes: number }} CacheStorage
 */

/** @typedef {{ config: CacheConfig, held: Held, storage: CacheStorage }} CacheState */

/**
 * @typedef {object} AppendCall
 * @property {string} fn
 * @property {CacheState} state
 * @property {number} T
 * @property {Operand} k @property {Operand} v
 * @property {Strides} kStrides @property {Strides} vStrides
 * @property {Int32Array} first where each item's first token goes, as Append of attention.h
 * @property {Int32Array | null} lengths
 * @property {Held} next what is held afterwards
 */

/**
 * What the attention over a cache knows beside keys and values, as Attention of attention.h.
 * @typedef {object} CachePart
 * @property {CacheStorage} storage
 * @property {number} prefix
 * @property {number} ringSize 0: every key stands in the row of its number
 * @property {Int32Array | null} ringStart
 * @property {Int32Array | null} gap
 * @property {number} scaleBatch @property {number} scaleHead
 */

const kConfigNames = ['batch', 'numKvHeads', 'headDim', 'valueDim', 'capacity', 'dtype', 'window', 'sinkTokens'];
const kAppendNames = ['lengths', 'layout'];
const kAttendNames = kOptions.filter((name) => name !== 'keyLengths');
/** @type {readonly CacheDtype[]} */
export const kCacheDtypes = ['float32', 'float16', 'bfloat16', 'int8', 'q8_0', 'q4_0'];
const kBlock = 32;
/** As the largest position in check-visibility.js. */
const kMostTokens = 2 ** 29;

/** @param {CacheDtype} dtype */
export const isQuantized = (dtype) => kCacheDtypes.indexOf(dtype) > 2;

/** @param {Context} context @param {unknown} given @returns {CacheConfig} */
export function cacheConfig({ fn }, given) {
  const options = optionsOf(fn, given, kConfigNames);
  /** @param {string} name @param {number} most @param {number} [byDefault] */
  const size = (name, most, byDefault) => integer(fn, name, options[name] ?? byDefault, 1, most);
  const hasWindow = !isAbsent(options.window);
  const dtype = options.dtype ?? 'float32';
  const config = {
    B: size('batch', kMostTokens, 1),
    Hkv: size('numKvHeads', kMostTokens),
    D: size('headDim', kMostTokens),
    Dv: size('valueDim', kMostTokens, options.headDim),
    capacity: size('capacity', kMostTokens),
    dtype,
    window: hasWindow ? size('window', kMostTokens) : 0,
    sinkTokens: integer(fn, 'sinkTokens', options.sinkTokens ?? 0, 0, hasWindow ? kMostTokens : 0),
  };
  if (!kCacheDtypes.includes(dtype))
    refuse('INVALID_DTYPE', fn, `dtype must be among ${kCacheDtypes.join(', ')}`, dtype);
  for (const [name, width] of [
    ['headDim', config.D],
    ['valueDim', config.Dv],
  ]) {
    if (dtype.startsWith('q') && /** @type {number} */ (width) % kBlock !== 0) {
      refuse('INVALID_OPTION', fn, `${name} must be a multiple of ${kBlock} for dtype '${dtype}'`, width);
    }
  }
  const { B, Hkv, D, Dv, capacity, window, sinkTokens } = config;
  if (hasWindow && capacity < sinkTokens + window) {
    refuse('INVALID_OPTION', fn, `capacity must be at least sinkTokens + window = ${sinkTokens + window}`, capacity);
  }
  const count = B * Hkv * capacity * Math.max(D, Dv, kBlock);
  if (count > kMostElements) {
    const rule = `batch · numKvHeads · capacity · width must be at most ${kMostElements}`;
    refuse('INVALID_OPTION', fn, rule, count);
  }
  return config;
}

/** @param {Held} held the tokens of each item */
export const lengthsHeld = ({ positions, evicted }) => positions.map((position, b) => position - evicted[b]);

/** @param {Int32Array} numbers */
export const largest = (numbers) => numbers.reduce((a, b) => Math.max(a, b), 0);

/**
 * @param {Context} context @param {CacheState} state @param {unknown} k @param {unknown} v @param {unknown} given
 * @returns {AppendCall}
 */
export function describeAppend(context, state, k, v, given) {
  const options = optionsOf(context.fn, given, kAppendNames);
  return appendOperands(context, state, { k: operand(context, 'k', k), v: operand(context, 'v', v) }, options);
}

/**
 * The same for operands that are checked, and options whose names are.
 * @param {Context} context @param {CacheState} state @param {{ k: Operand, v: Operand }} operands
 * @param {Record<string, any>} options
 * @returns {AppendCall}
 */
export function appendOperands({ fn }, state, { k, v }, options) {
  const { B, Hkv, D, Dv, window, sinkTokens, capacity } = state.config;
  const kAxes = axesOf(fn, 'k', k, layoutOf(fn, options.layout, k));
  const vAxes = axesOf(fn, 'v', v, layoutOf(fn, options.layout, v));
  const T = kAxes.T;
  /** @param {string} name @param {Axes} axes @param {number} width @param {Operand} given */
  const check = (name, axes, width, { shape }) => {
    if (axes.B !== B || axes.H !== Hkv || axes.D !== width || axes.T !== T) {
      const want = [
        ['B', B],
        ['Hkv', Hkv],
        ['T', T],
        [name === 'k' ? 'D' : 'Dv', width],
      ];
      const rule = `${name} must have ${want.map(([letter, size]) => `${letter} = ${size}`).join(', ')}`;
      refuse('INVALID_SHAPE', fn, rule, shape);
    }
  };
  check('k', kAxes, D, k);
  check('v', vAxes, Dv, v);
  const lengths = lengthsOf(fn, 'lengths', options.lengths, B, T);
  const { positions } = state.held;
  const next = { positions: positions.slice(), evicted: state.held.evicted.slice() };
  for (let b = 0; b < B; ++b) grow(fn, state.config, next, b, lengths ? lengths[b] : T);
  const ringSize = capacity - sinkTokens;
  const first = positions.map((t) => (window && t > sinkTokens ? sinkTokens + ((t - sinkTokens) % ringSize) : t));
  return { fn, state, T, k, v, kStrides: kAxes.strides, vStrides: vAxes.strides, first, lengths, next };
}

/**
 * One item takes `count` tokens more, or there is no room for them.
 * @param {string} fn @param {CacheConfig} config @param {Held} held @param {number} b @param {number} count
 */
function grow(fn, { capacity, window, sinkTokens }, { positions, evicted }, b, count) {
  const before = positions[b];
  const after = before + count;
  const most = window ? kMostTokens : capacity;
  if (after > most) refuse('CAPACITY', fn, `k must fit into the capacity of ${most} beside ${before} tokens`, count);
  positions[b] = after;
  if (!window || after - capacity <= evicted[b]) return;
  // The first of the new tokens still has to see its whole window.
  const room = Math.max(capacity + evicted[b] - before, capacity - (sinkTokens + window - 1));
  if (count > room) {
    const rule = `k must have at most ${room} tokens at once, so that capacity ≥ sinkTokens + window + tokens − 1`;
    refuse('CAPACITY', fn, rule, count);
  }
  evicted[b] = after - capacity;
}

/**
 * @param {Context} context @param {CacheState} state @param {unknown} q @param {unknown} given
 * @returns {AttentionCall}
 */
export function describeAttend(context, state, q, given) {
  const options = optionsOf(context.fn, given, kAttendNames);
  return attendOperand(context, state, state.held, operand(context, 'q', q), options);
}

/**
 * The same for an operand that is checked, over what is held then.
 * @param {Context} context @param {CacheState} state @param {Held} held @param {Operand} q
 * @param {Record<string, any>} options
 * @returns {AttentionCall}
 */
export function attendOperand(context, { config, storage }, held, q, options) {
  const { fn } = context;
  const { B, Hkv, D, Dv, dtype, capacity, sinkTokens } = config;
  const layout = layoutOf(fn, options.layout, q);
  const qAxes = axesOf(fn, 'q', q, layout);
  const rank = q.shape.length;
  if (qAxes.B !== B || (rank === 2 && Hkv !== 1)) {
    refuse(
      'INVALID_SHAPE',
      fn,
      `q must have the batch of the cache, B = ${B}, and a head axis unless Hkv = 1`,
      q.shape,
    );
  }
  const lengths = lengthsHeld(held);
  const Tk = largest(lengths);
  const isRagged = lengths.some((length) => length !== Tk);
  /** @param {Storage} part @param {number} width @returns {Operand} */
  const kept = (part, width) => {
    const full = layout === 'bthd' ? [B, Tk, Hkv, width] : [B, Hkv, Tk, width];
    const shape = full.slice(4 - rank);
    const count = B * Hkv * Tk * width;
    return {
      storage: part,
      data: null,
      dtype: /** @type {any} */ (dtype),
      isFloat16Array: false,
      shape,
      start: 0,
      count,
    };
  };
  const aligned = alignedOptions(fn, config, held, qAxes, options);
  const operands = { q, k: kept(storage.keys, D), v: kept(storage.values, Dv) };
  const call = describeOperands(context, operands, { ...aligned, keyLengths: isRagged ? lengths : null });
  /** @param {number} token @returns {Strides} */
  const strides = (token) => ({ batch: Hkv * capacity * token, head: capacity * token, token });
  const { evicted } = held;
  const isRound = evicted.some((count) => count > 0);
  return {
    ...call,
    kStrides: strides(storage.keyToken),
    vStrides: strides(storage.valueToken),
    // So that what lies beyond an item's length isn't read for logits either.
    kStart: isRagged ? lengths.map((_, b) => b * Hkv * capacity) : null,
    cache: {
      storage,
      prefix: sinkTokens,
      ringSize: isRound ? capacity - sinkTokens : 0,
      ringStart: isRound ? evicted.map((count) => count % (capacity - sinkTokens)) : null,
      gap: isRound && call.shared.alibi ? evicted : null,
      scaleBatch: Hkv * capacity,
      scaleHead: capacity,
    },
  };
}

/**
 * The options with every row's position said: the last rows are the newest tokens, unless the call says otherwise.
 * @param {string} fn @param {CacheConfig} config @param {Held} held @param {Axes} q @param {Record<string, any>} options
 */
function alignedOptions(fn, { window, sinkTokens }, held, { B, T }, options) {
  const lengths = lengthsHeld(held);
  const queryLengths = lengthsOf(fn, 'queryLengths', options.queryLengths, B, T);
  const causal = causalOf(fn, options.isCausal ?? true);
  const given = queryOffsetOf(fn, options.queryOffset, B);
  const offset = given ?? lengths.map((n, b) => (causal === 'top-left' ? 0 : n - (queryLengths ? queryLengths[b] : T)));
  const aligned = { ...options, queryOffset: offset, isCausal: given ? causal : causal !== false };
  if (!window) return aligned;
  held.evicted.forEach((count, b) => {
    const rule = `q must have rows whose whole window is still held, from key ${sinkTokens + window - 1} on`;
    if (count > 0 && offset[b] < sinkTokens + window - 1) refuse('CAPACITY', fn, rule, offset[b]);
  });
  const [left, right] = windowOf(fn, options.windowSize);
  if (sinkTokens > 0 && left >= 0) {
    refuse('INVALID_OPTION', fn, 'windowSize[0] must be -1 where the cache keeps first tokens', left);
  }
  return { ...aligned, windowSize: [left < 0 ? window - 1 : Math.min(left, window - 1), right] };
}

/**
 * What is held when each item keeps its first tokens alone.
 * @param {string} fn @param {CacheState} state @param {unknown} given how many, of those that are held
 * @returns {Held}
 */
export function truncated(fn, { config, held }, given) {
  const { B, window, sinkTokens } = config;
  const lengths = lengthsHeld(held);
  const counts = typeof given === 'number' ? lengths.map(() => given) : integers(fn, 'n', given, B, 0, kMostTokens);
  const next = { positions: held.positions.slice(), evicted: held.evicted.slice() };
  lengths.forEach((length, b) => {
    const count = integer(fn, 'n', typeof given === 'number' ? given : counts[b], 0, length);
    if (count === length) return;
    if (count <= sinkTokens) next.evicted[b] = 0;
    else if (held.evicted[b] > 0 && count < sinkTokens + window - 1) {
      const rule = `n must be at least sinkTokens + window − 1 = ${sinkTokens + window - 1} where a ring let tokens go`;
      refuse('CAPACITY', fn, rule, count);
    }
    next.positions[b] = count + next.evicted[b];
  });
  return next;
}
