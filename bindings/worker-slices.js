// Long calls in slices, inside a worker: a look at the stop flag before each, and word of how far the call has come.
//
// A worker that computes hears no message, so the page tells it to stop through four bytes of shared memory. Slices are
// cut by heads and rows, which changes no bit of any result: no row's arithmetic depends on the rows beside it.
import { isQuantized } from './check-cache.js';
import { AttentionError } from './errors.js';
import { partOf, pointerOf } from './frame.js';
import { bytesOf } from './memory.js';
import { Resident } from './tensor.js';

/** @import { AttentionCall, Strides } from './check-attention.js' */
/** @import { LinearCall } from './check-linear.js' */
/** @import { Operand, Output } from './check.js' */
/** @import { Float32Result, Result } from './types.js' */
/** @import { WasmBackend } from './wasm-backend.js' */
/** @import { Progress } from './worker-types.js' */

/** Multiply-adds of a slice: some ten milliseconds in SIMD, a hundred without. */
const kSlice = 2 ** 26;
/** A row's result depends on which kernel takes it, and few rows go to another one: slices stay well above that. */
const kRows = 64;

/**
 * Makes every kernel of a backend look first whether it shall still run.
 * @param {WasmBackend} backend
 * @param {{ isStopped: () => boolean, report: (progress: Progress) => void }} watcher
 */
export function watch(backend, { isStopped, report }) {
  const check = () => {
    if (isStopped()) throw new AttentionError('ABORTED', 'worker: signal must not be aborted, got one that is');
  };
  backend.pulse = check;
  const { attention, linear } = backend;
  /** @type {any} */
  const methods = backend;
  for (const name of ['merge', 'rope', 'norm', 'activation', 'append', 'packLinear', 'tensor']) {
    const method = methods[name];
    methods[name] = (/** @type {unknown[]} */ ...args) => {
      check();
      return method.apply(backend, args);
    };
  }
  /** @param {Progress['step']} step @param {(() => void)[]} slices */
  const run = (step, slices) => {
    slices.forEach((slice, done) => {
      check();
      report({ step, done, total: slices.length });
      slice();
    });
    report({ step, done: slices.length, total: slices.length });
  };
  backend.attention = (call) => {
    check();
    const parts = attentionParts(call);
    return parts.length < 2
      ? attention.call(backend, call)
      : slicedAttention(backend, attention.bind(backend), call, (slices) => run('attention', slices), parts);
  };
  backend.linear = (call) => {
    check();
    const parts = linearParts(call);
    return parts.length < 2
      ? linear.call(backend, call)
      : slicedLinear(backend, linear.bind(backend), call, (slices) => run('linear', slices), parts);
  };
}

/** @typedef {{ head: number, heads: number, row: number, rows: number }} Part */

/** The heads and rows of each slice; a single one where cutting is not worth it. @param {AttentionCall} call @returns {Part[]} */
function attentionParts({ B, H, Hkv, Tq, Tk, D, Dv, out, lse, qStart, shared: { mask } }) {
  const row = B * Tk * (D + Dv);
  const hasWideMask = mask && (mask.strides[0] > 0 || mask.strides[1] > 0); // its part would be a copy of nearly all
  if (row * H * Tq < 2 * kSlice || !(out || lse) || hasWideMask || Tq < kRows) return [];
  const group = H / Hkv;
  const heads = group * Math.min(Hkv, Math.max(1, Math.floor(kSlice / (row * group * Tq))));
  const wanted = Math.ceil(kSlice / (row * heads * kRows)) * kRows;
  const rows = qStart ? Tq : Math.min(Tq, wanted);
  /** @type {Part[]} */
  const parts = [];
  for (let head = 0; head < H; head += heads) {
    for (const [first, count] of ranges(Tq, rows)) {
      parts.push({ head, heads: Math.min(heads, H - head), row: first, rows: count });
    }
  }
  return parts;
}

/** [first, count] of `size` elements in pieces; the last takes a short rest along. @param {number} size @param {number} piece @returns {[number, number][]} */
function ranges(size, piece) {
  const count = Math.max(1, Math.floor(size / piece));
  return Array.from({ length: count }, (_, n) => [n * piece, n === count - 1 ? size - n * piece : piece]);
}

/**
 * @param {WasmBackend} backend @param {(call: AttentionCall) => any} attention @param {AttentionCall} call
 * @param {(slices: (() => void)[]) => void} run @param {Part[]} parts
 */
function slicedAttention(backend, attention, call, run, parts) {
  /** @type {Resident[]} */
  const held = [];
  try {
    /** @param {Operand} operand */
    const bring = (operand) => (operand.storage ? operand : brought(backend, call.fn, operand, held));
    const whole = { ...call, q: bring(call.q), k: bring(call.k), v: bring(call.v), weights: null };
    const result = call.out && resultOf(backend, call.fn, call.out, held);
    /** @type {Float32Result | null} */
    const lse = call.lse && { data: new Float32Array(call.lse.count), shape: [...call.lse.shape], dtype: 'float32' };
    run(
      parts.map((part) => () => {
        const piece = partOfCall({ ...whole, out: result?.out ?? null }, part);
        const got = attention(piece).lse;
        if (lse && call.lse) scatter(got.data, lse.data, call, part);
      }),
    );
    const weights = call.weights && attention({ ...whole, out: null, lse: null, weights: call.weights }).weights;
    return { output: result?.read() ?? null, weights, lse };
  } finally {
    for (const resident of held) resident.dispose();
  }
}

/** Brought into memory, once for all slices. @param {WasmBackend} backend @param {string} fn @param {Operand} operand @param {Resident[]} held @returns {Operand} */
function brought(backend, fn, operand, held) {
  const tensor = backend.tensor(fn, partOf(operand), operand);
  held.push(tensor);
  return { ...operand, data: null, start: 0, storage: Resident.storageOf(tensor, backend, fn, 'a copy') };
}

/**
 * Where the slices write, and how their sum is read at the end.
 * @param {WasmBackend} backend @param {string} fn @param {Output} out @param {Resident[]} held
 * @returns {{ out: Output, read: () => Result }}
 */
function resultOf(backend, fn, out, held) {
  if (out.tensor) return { out, read: () => /** @type {Result} */ (out.tensor) };
  const tensor = backend.tensor(fn, undefined, out);
  held.push(tensor);
  const storage = Resident.storageOf(tensor, backend, fn, 'the result');
  const read = () => ({ data: tensor.read(), shape: out.shape.slice(), dtype: out.dtype });
  return { out: { ...out, storage, tensor }, read };
}

/**
 * One slice as a call of its own.
 * @param {AttentionCall} call in memory throughout @param {Part} part
 * @returns {AttentionCall}
 */
function partOfCall(call, { head, heads, row, rows }) {
  const { cache, out, lse, shared } = call;
  const kvHead = (head * call.Hkv) / call.H;
  const isPacked = call.qStart !== null;
  /** @param {Strides} strides */
  const rowStart = (strides) => head * strides.head + row * strides.token;
  /** @param {Operand} kv @param {Strides} strides */
  const kvPart = (kv, strides) =>
    shifted(kv, kvHead * strides.head, isQuantized(/** @type {any} */ (kv.dtype)) ? 1 : bytesOf(kv.dtype));
  const rest = (/** @type {number} */ length) => Math.max(0, Math.min(rows, length - row));
  return {
    ...call,
    ...{ H: heads, Hkv: (heads * call.Hkv) / call.H, Tq: rows },
    ...{ q: shifted(call.q, rowStart(call.qStrides), bytesOf(call.q.dtype)) },
    ...{ k: kvPart(call.k, call.kStrides), v: kvPart(call.v, call.vStrides) },
    out: out && shifted(out, rowStart(call.outStrides), bytesOf(out.dtype)),
    qLength: isPacked ? call.qLength : (call.qLength?.map(rest) ?? null),
    lse: lse && lseOf(call, heads, rows),
    cache: cache && { ...cache, storage: cacheFrom(cache, kvHead) },
    shared: {
      ...shared,
      offset: offsetFrom(call, row),
      mask: maskFrom(shared.mask, row, rows, call.Tk),
      alibi: shared.alibi && headsOf(shared.alibi, head, heads),
      sinks: shared.sinks && headsOf(shared.sinks, head, heads),
    },
  };
}

/**
 * The same operand or output, some elements further on.
 * @template {{ storage: any }} T
 * @param {T} of @param {number} elements @param {number} unit bytes of one
 * @returns {T}
 */
function shifted(of, elements, unit) {
  return { ...of, storage: { ...of.storage, pointer: pointerOf(of.storage) + elements * unit } };
}

/** @param {Operand} vector @param {number} head @param {number} heads @returns {Operand} */
const headsOf = (vector, head, heads) => ({ ...vector, start: vector.start + head, count: heads });

/** @param {AttentionCall} call @param {number} row */
function offsetFrom({ B, shared: { offset, left, right, alibi } }, row) {
  if (row === 0 || (left < 0 && right < 0 && !alibi)) return offset;
  return offset ? offset.map((position) => position + row) : new Int32Array(B).fill(row);
}

/** @param {import('./check-visibility.js').Mask | null} mask @param {number} row @param {number} rows @param {number} Tk */
function maskFrom(mask, row, rows, Tk) {
  if (!mask) return null;
  const [, , perRow, perKey] = mask.strides;
  const start = row * perRow;
  const count = (rows - 1) * perRow + (Tk - 1) * perKey + 1;
  return {
    ...mask,
    allowed: mask.allowed?.subarray(start, start + count) ?? null,
    added: mask.added && { ...mask.added, start: mask.added.start + start, count },
  };
}

/** @param {NonNullable<AttentionCall['cache']>} cache @param {number} kvHead */
function cacheFrom({ storage, scaleHead }, kvHead) {
  /** @param {import('./tensor.js').Storage | null} scales */
  const from = (scales) => scales && /** @type {any} */ (shifted({ storage: scales }, kvHead * scaleHead, 4).storage);
  return { ...storage, keyScales: from(storage.keyScales), valueScales: from(storage.valueScales) };
}

/** Where a slice writes its log-sums: packed like those of the whole call. @param {AttentionCall} call @param {number} heads @param {number} rows */
function lseOf({ B, qStart, lse }, heads, rows) {
  const perHead = qStart ? /** @type {NonNullable<typeof lse>} */ (lse).head : rows;
  const batch = qStart ? 0 : heads * rows;
  return { shape: [heads * perHead], count: qStart ? heads * perHead : B * batch, batch, head: perHead };
}

/** Log-sums of a slice to their places. @param {Float32Array} from @param {Float32Array} to @param {AttentionCall} call @param {Part} part */
function scatter(from, to, { B, H, Tq, qStart, lse }, { head, heads, row, rows }) {
  if (qStart) {
    to.set(from, head * /** @type {NonNullable<typeof lse>} */ (lse).head);
    return;
  }
  for (let b = 0; b < B; ++b) {
    for (let h = 0; h < heads; ++h) {
      const at = (b * heads + h) * rows;
      to.set(from.subarray(at, at + rows), (b * H + head + h) * Tq + row);
    }
  }
}

/** Rows of each slice. Only packed weights: any other is laid out anew in each call. @param {LinearCall} call */
function linearParts({ M, N, K, packed }) {
  if (!packed || M * N * K < 2 * kSlice || M < 2 * kRows) return [];
  return ranges(M, Math.ceil(kSlice / (N * K * kRows)) * kRows);
}

/**
 * @param {WasmBackend} backend @param {(call: LinearCall) => any} linear @param {LinearCall} call
 * @param {(slices: (() => void)[]) => void} run @param {[number, number][]} parts
 */
function slicedLinear(backend, linear, call, run, parts) {
  const { fn, N, K } = call;
  /** @type {Resident[]} */
  const held = [];
  /** @param {Operand} operand */
  const bring = (operand) => (operand.storage ? operand : brought(backend, fn, operand, held));
  try {
    const x = bring(call.x);
    const residual = call.residual && bring(call.residual);
    const { out, read } = resultOf(backend, fn, call.out, held);
    run(
      parts.map(([row, rows]) => () => {
        /** @template {{ storage: any, dtype: any }} T @param {T} of @param {number} width @returns {T} */
        const from = (of, width) => ({ ...shifted(of, row * width, bytesOf(of.dtype)), count: rows * width });
        linear({ ...call, M: rows, x: from(x, K), residual: residual && from(residual, N), out: from(out, N) });
      }),
    );
    return read();
  } finally {
    for (const resident of held) resident.dispose();
  }
}
