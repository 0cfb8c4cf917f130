// The steps of a model on the GPU, as Steps of transformer/steps.js has them on wasm. Where that has an address, this has
// a Part: a place in a buffer. All steps of a pass go into one recording, and only what a pass returns is read back.
import { typeNumber } from '../memory.js';
import { attention } from './attention.js';
import { append, appendLayout, clear, clearLayout, embedding, embeddingLayout, kThreads } from './elementwise.wgsl.js';
import { rotate, runActivation, runLinear, runNorm } from './layers.js';
import { bufferOf, placedPart } from './operands.js';

/** @import { AttentionCall } from '../check-attention.js' */
/** @import { AppendCall, CacheState } from '../check-cache.js' */
/** @import { Operand, Output } from '../check.js' */
/** @import { Storage } from '../tensor.js' */
/** @import { ModelConfig } from '../transformer/config.js' */
/** @import { Dtype, Float32Result } from '../types.js' */
/** @import { PackedStorage, WebgpuBackend } from './backend.js' */
/** @import { Part } from './operands.js' */

/** Places that a pass names. @typedef {Record<string, Part>} Places */

/** A linear layer; its bias stands with the weight. @typedef {{ N: number, K: number, packed: PackedStorage }} LinearPart */

/** The buffers of a pass, as Frame has them in one block of memory. */
class GpuFrame {
  #backend;
  /** @type {any} */
  #fields;

  /** @param {WebgpuBackend} backend @param {string} fn @param {object} fields */
  constructor(backend, fn, fields) {
    backend.recording.fn = fn;
    this.#backend = backend;
    this.#fields = fields;
  }

  /** @param {string} name @param {Int32Array | Float32Array | null} data */
  input(name, data) {
    if (data) this.#fields[name] = placedPart(this.#backend.recording.upload(data));
  }

  /** @param {string} name @param {Operand} operand */
  float32(name, operand) {
    this.#fields[name] = this.#backend.operands.float32(operand);
  }

  /** @param {string} name @param {number} bytes */
  place(name, bytes) {
    if (bytes === 0) return;
    this.#fields[name] = { buffer: this.#backend.recording.temporary(bytes), first: 0, dtype: 'float32' };
  }

  /** @template R @param {number} _count @param {() => void} run @param {() => R} results @returns {R} */
  run(_count, run, results) {
    run();
    return results();
  }

  /** @param {string} name @param {{ shape: readonly number[], count: number }} of */
  floats(name, of) {
    return this.#backend.operands.fresh(this.#fields[name], of);
  }
}

export class GpuSteps {
  #backend;

  /** @param {WebgpuBackend} backend */
  constructor(backend) {
    this.#backend = backend;
  }

  /** @param {string} fn @param {object} fields */
  frame(fn, fields) {
    return new GpuFrame(this.#backend, fn, fields);
  }

  /** @param {Part} part @param {number} floats */
  at(part, floats) {
    return { ...part, first: part.first + floats };
  }

  /** @param {Storage} storage @param {Dtype} dtype @returns {Part} */
  tensorAt(storage, dtype) {
    return { buffer: bufferOf(storage), first: 0, dtype };
  }

  /** @param {Storage} storage */
  linearAt(storage) {
    return { packed: storage, bias: 0 };
  }

  /** @param {string} fn @param {Operand} given */
  widened(fn, given) {
    return this.#backend.keep(fn, given);
  }

  /** @param {{ T: number, width: number, vocabulary: number, table: Part, packed: PackedStorage | 0, tokens: Part, positions: Part | 0, out: Part }} of */
  embedding({ T, width, vocabulary, table, packed, tokens, positions, out }) {
    const { recording, operands } = this.#backend;
    const from = packed ? this.tensorAt(packed, 'float32') : table;
    const ids = operands.window(tokens, 0, T);
    for (const { start, end } of operands.chunks(T * width, width)) {
      const target = operands.window(out, start, end);
      const learned = positions ? operands.window(positions, start, end) : { binding: operands.unused, first: 0 };
      for (const part of operands.chunks(vocabulary * width, width)) {
        const { binding, first } = operands.window(from, part.start, part.end);
        recording.dispatch({
          ...{ name: 'embedding', code: embedding, layout: embeddingLayout },
          constants: { kType: typeNumber(from.dtype) },
          values: {
            ...{ count: end - start, width, row0: part.start / width, row_end: part.end / width, table_first: first },
            ...{ tokens_first: ids.first + start / width, out_first: target.first + start },
            ...{ positions_first: learned.first + start, has_positions: positions ? 1 : 0 },
          },
          bindings: [binding, ids.binding, learned.binding, { ...target.binding, isWritten: true }],
          groups: Math.ceil((end - start) / kThreads),
        });
      }
    }
  }

  /** @param {number} rows @param {number} width @param {ModelConfig} config @param {Part} x @param {{ weight: Part, bias: Part | 0 }} part @param {Part} out */
  norm(rows, width, config, x, part, out) {
    runNorm(this.#backend, normCall(rows, width, config, x, part, out));
  }

  /** @param {number} T @param {number} row @param {number} heads @param {number} headDim @param {ModelConfig} config @param {Part} x @param {Part} weight */
  headNorm(T, row, heads, headDim, config, x, weight) {
    const call = normCall(T * heads, headDim, config, x, { weight, bias: 0 }, x);
    runNorm(this.#backend, call, { size: heads, stride: row });
  }

  /** @param {number} M @param {LinearPart} part @param {Part} x @param {Part} out @param {Part | 0} residual */
  linear(M, { N, K, packed }, x, out, residual) {
    runLinear(this.#backend, {
      ...{ fn: this.#backend.recording.fn, M, N, K, x: operandAt(x, M * K), weight: null, bias: null, packed },
      residual: residual ? operandAt(residual, M * N) : null,
      out: outputAt(out, M * N),
    });
  }

  linearScratch() {
    return 0;
  }

  /** @param {number} T @param {number} H @param {number} D @param {number} rotary @param {Part} x @param {number} token @param {Part} cos @param {Part} sin */
  rope(T, H, D, rotary, x, token, cos, sin) {
    const turns = { H, T, D, rotary, style: 1, tokensFirst: true, setSize: H, setStride: token, vectors: T * H };
    const count = T * Math.floor(rotary / 2);
    rotate(this.#backend, { ...turns, tableBatch: 0 }, x, x, { cos, sin, count });
  }

  /** Lists go with each call. @param {GpuFrame} _frame @param {Places} _at @param {AttentionCall} call */
  prepare(_frame, _at, call) {
    return call;
  }

  attentionScratch() {
    return 0;
  }

  /** Nothing to place: the list of rows goes with each call. */
  prepareAppend() {}

  /** @param {AppendCall} call @param {Places} _at @param {Part} k @param {Part} v */
  append(call, _at, k, v) {
    this.#backend.append({ ...call, k: operandAt(k, call.k.count), v: operandAt(v, call.v.count) });
  }

  /**
   * @param {AttentionCall} call @param {Places} at @param {Part} k @param {Part} v @param {CacheState | null} state
   * @param {boolean} isKept whether the weights are
   * @returns {Float32Result | null}
   */
  attention(call, at, k, v, state, isKept) {
    const part = (/** @type {Operand} */ given, /** @type {Part} */ own, /** @type {Storage | undefined} */ held) =>
      held ? { ...given, storage: held } : operandAt(own, given.count);
    const { weights } = attention(this.#backend, {
      ...call,
      q: operandAt(at.qkv, call.q.count),
      k: part(call.k, k, state?.storage.keys),
      v: part(call.v, v, state?.storage.values),
      out: outputAt(at.mixed, /** @type {Output} */ (call.out).count),
      weights: isKept ? call.weights : null,
    });
    return weights;
  }

  /** @param {{ count: number, kind: number, x: Part, gate: Part | 0, out: Part }} of */
  activation({ count, kind, x, gate, out }) {
    const { fn } = this.#backend.recording;
    const factor = gate ? operandAt(gate, count) : null;
    runActivation(this.#backend, { fn, kind, x: operandAt(x, count), gate: factor, out: outputAt(out, count) });
  }

  /** @param {Part} part @param {number} rows @param {number} width @param {number} stride */
  clear(part, rows, width, stride) {
    const { operands, recording } = this.#backend;
    for (const { start, end } of operands.chunks(rows * stride, stride)) {
      const count = ((end - start) / stride) * width;
      const { binding, first } = operands.window(part, start, end - stride + width);
      recording.dispatch({
        ...{ name: 'clear', code: clear, layout: clearLayout },
        values: { count, width, stride, out_first: first + start },
        bindings: [{ ...binding, isWritten: true }],
        groups: Math.ceil(count / kThreads),
      });
    }
  }

  /** @param {Part} part @param {number} heads @param {number} T @param {number} D @param {number} stride @returns {Float32Result} */
  heads(part, heads, T, D, stride) {
    const { operands, recording } = this.#backend;
    const buffer = recording.temporary(heads * T * D * 4);
    for (const { start, end } of operands.chunks(T * stride, stride)) {
      const rows = (end - start) / stride;
      const count = heads * rows * D;
      const { binding, first } = operands.window(part, start, end - stride + heads * D);
      recording.dispatch({
        ...{ name: 'append', code: append, layout: appendLayout, constants: { kFromType: 0, kToType: 0 } },
        values: {
          ...{ H: heads, T: rows, width: D, words: D, count, first: 0, lengths: -1, ring_first: 0, ring_size: 0 },
          ...{ from_first: first + start, from_batch: 0, from_head: D, from_token: stride },
          ...{ to_first: (start / stride) * D, to_batch: 0, to_head: T * D, to_token: D },
        },
        bindings: [binding, operands.unused, { ...operands.whole(buffer), isWritten: true }],
        groups: Math.ceil(count / kThreads),
      });
    }
    return this.#fresh({ buffer, first: 0, dtype: 'float32' }, [heads, T, D]);
  }

  /** @param {string} _fn @param {Part} part @param {readonly number[]} shape @returns {Float32Result} */
  read(_fn, part, shape) {
    return this.#fresh(part, shape);
  }

  /** @param {Part} part @param {readonly number[]} shape @returns {Float32Result} */
  #fresh(part, shape) {
    const count = shape.reduce((product, size) => product * size, 1);
    return /** @type {Float32Result} */ (this.#backend.operands.fresh(part, { shape, count }));
  }
}

/** @param {Part} part @param {number} count @returns {Operand} */
const operandAt = ({ buffer, first, dtype }, count) => ({
  ...{ storage: /** @type {any} */ ({ buffer }), data: null, dtype, isFloat16Array: false },
  ...{ shape: [count], start: first, count },
});

/** @param {Part} part @param {number} count @returns {Output} */
const outputAt = (part, count) => ({ ...operandAt(part, count), tensor: null });

/** @param {number} rows @param {number} width @param {ModelConfig} config @param {Part} x @param {{ weight: Part, bias: Part | 0 }} part @param {Part} out */
const normCall = (rows, width, { norm: kind, epsilon }, x, { weight, bias }, out) => ({
  ...{ fn: '', rows, width, kind, epsilon, x: operandAt(x, rows * width), weight: operandAt(weight, width) },
  bias: bias ? operandAt(bias, width) : null,
  out: outputAt(out, rows * width),
});
