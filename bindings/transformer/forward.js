// One forward pass. All steps work on one block of memory, by address; what leaves it are the results alone.
//
//   x = embedding;  in each layer  x += out(attention(qkv(norm(x)))),  x += down(act(gate(norm(x))) · up(norm(x)))
//   logits = head(norm(x))
//
// A step is one call of the module. Its struct is filled here rather than through the checked calls of the package,
// because a token of a small model takes less time than those checks.
import { attentionFields } from '../attention-fields.js';
import { describeOperands } from '../check-attention.js';
import { appendOperands, attendOperand } from '../check-cache.js';
import { pending } from '../check-multi-head.js';
import { Frame, pointerOf } from '../frame.js';
import { Steps } from './steps.js';

/** @import { AttentionCall } from '../check-attention.js' */
/** @import { AppendCall, CacheState } from '../check-cache.js' */
/** @import { Context, Operand } from '../check.js' */
/** @import { RopeTables } from '../rope-tables.js' */
/** @import { Float32Result } from '../types.js' */
/** @import { WasmBackend } from '../wasm-backend.js' */
/** @import { LayerAttention, ModelConfig } from './config.js' */
/** @import { LayerParts, ModelParts } from './weights.js' */

/**
 * A checked call.
 * @typedef {object} ForwardCall
 * @property {Int32Array} tokens at least one
 * @property {CacheState[] | null} cache a state for each layer
 * @property {boolean} allLogits
 * @property {boolean} hidden
 * @property {Capture | null} capture
 * @property {boolean} queries @property {boolean} keys @property {boolean} values to be kept as the attention takes them
 * @property {AttentionChange} change
 */

/**
 * What is asked of the attention in place of what the model was trained with; null: as it was trained.
 * @typedef {object} AttentionChange
 * @property {boolean} isCausal
 * @property {number | null} scale
 * @property {number} temperature divides the logits, behind the cap
 * @property {number} softcap
 * @property {[number, number] | null} windowSize
 * @property {boolean} rope
 */

/** Which attention weights to keep. @typedef {{ layers: ReadonlySet<number>, heads: Int32Array, rows: Int32Array }} Capture */

/** @typedef {{ layer: number, heads: number[], rows: number[], weights: Float32Result }} LayerWeights */

/** @typedef {'queries' | 'keys' | 'values'} Projected */

/** @typedef {{ logits: Float32Result, attention?: LayerWeights[], hidden?: Float32Result[] } & Partial<Record<Projected, Float32Result[]>>} ForwardResult */

/** A model in memory. @typedef {{ backend: WasmBackend, config: ModelConfig, parts: ModelParts, tables: RopeTables, steps: Steps }} Model */

/** @param {WasmBackend} backend @param {ModelConfig} config @param {ModelParts} parts @param {RopeTables} tables @returns {Model} */
export const modelOf = (backend, config, parts, tables) => ({
  ...{ backend, config, parts, tables },
  steps: new Steps(backend),
});

const kFloat = 4;

// biome-ignore format: a plain literal, because spreads cost more than a step
const places = () => ({
  tokens: 0, x: 0, y: 0, qkv: 0, mixed: 0, gate: 0, up: 0, logits: 0, scratch: 0,
  cos: 0, sin: 0, offset: 0, first: 0, weights: 0, heads: 0, rows: 0,
});

export class Pass {
  #model;
  #context;
  #call;
  #T;
  /** Floats of a token's queries, keys and values, which stand in one row. */
  #row;
  /** @type {AppendCall | null} */
  #append;
  /** The struct of each kind of layer; pointers are set layer by layer. @type {Map<LayerAttention, Record<string, number>>} */
  #attention = new Map();
  /** @type {Float32Result['shape']} */
  #weightsShape = [];
  /** Where everything stands in the block. */
  #at = places();
  /** @type {LayerWeights[]} */
  #weights = [];
  /** @type {Float32Result[]} */
  #hidden = [];
  /** Queries, keys and values that are kept, layer by layer. @type {Partial<Record<Projected, Float32Result[]>>} */
  #projected = {};
  /** Of heads that are switched off, in each layer. @type {readonly (readonly number[])[]} */
  #disabled;

  /** @param {Model} model @param {Context} context @param {ForwardCall} call @param {readonly (readonly number[])[]} disabled */
  constructor(model, context, call, disabled) {
    const { heads, kvHeads, headDim } = model.config;
    this.#model = model;
    this.#context = context;
    this.#call = call;
    this.#disabled = disabled;
    this.#T = call.tokens.length;
    this.#row = (heads + 2 * kvHeads) * headDim;
    this.#append = call.cache ? this.#describeAppend(call.cache[0]) : null;
  }

  /** @returns {ForwardResult} */
  run() {
    const { cache, capture, hidden } = this.#call;
    const rows = this.#call.allLogits ? this.#T : 1;
    const { vocabulary } = this.#model.config;
    const frame = this.#frame(rows);
    return frame.run(
      1,
      () => this.#compute(rows),
      () => {
        const logits = frame.floats('logits', { shape: [rows, vocabulary], count: rows * vocabulary });
        // Only now: after an error the cache holds what it held before.
        if (cache && this.#append) for (const state of cache) state.held = this.#append.next;
        return {
          logits,
          ...(capture && { attention: this.#weights }),
          ...(hidden && { hidden: this.#hidden }),
          ...this.#projected,
        };
      },
    );
  }

  /** @param {CacheState} state @returns {AppendCall} */
  #describeAppend(state) {
    const { kvHeads, headDim } = this.#model.config;
    const k = pending([1, this.#T, kvHeads, headDim]);
    const call = appendOperands(this.#context, state, { k, v: k }, { layout: 'bthd' });
    const strides = { batch: 0, head: headDim, token: this.#row };
    return { ...call, kStrides: strides, vStrides: strides };
  }

  /** @param {LayerAttention} kind @returns {AttentionCall} */
  #describeAttention({ scale, window }) {
    const { heads, kvHeads, headDim } = this.#model.config;
    const { cache, capture, change } = this.#call;
    const q = pending([1, this.#T, heads, headDim]);
    const { isCausal, temperature, softcap, windowSize } = change;
    const options = {
      ...{ isCausal, layout: 'bthd' },
      // c·tanh(x / c) / t is also (c / t)·tanh((x / t) / (c / t)): the kernels need no temperature of their own.
      ...{ scale: (change.scale ?? scale) / temperature, softcap: softcap / temperature },
      windowSize: windowSize ?? (window ? [window - 1, -1] : null),
      needWeights: capture && { heads: capture.heads, rows: capture.rows },
    };
    if (cache && this.#append) return attendOperand(this.#context, cache[0], this.#append.next, q, options);
    const k = pending([1, this.#T, kvHeads, headDim]);
    return describeOperands(this.#context, { q, k, v: k }, options);
  }

  /** Room for everything, and the inputs. @param {number} logitRows */
  #frame(logitRows) {
    const T = this.#T;
    const { config, backend } = this.#model;
    const { capture, tokens } = this.#call;
    const frame = new Frame(backend, this.#context.fn, this.#at);
    frame.input('tokens', tokens);
    for (const name of ['x', 'y']) frame.place(name, T * config.width * kFloat);
    frame.place('qkv', T * this.#row * kFloat);
    frame.place('mixed', T * config.heads * config.headDim * kFloat);
    for (const name of config.isGated ? ['gate', 'up'] : ['up']) frame.place(name, T * config.inner * kFloat);
    frame.place('logits', logitRows * config.vocabulary * kFloat);
    this.#placeRotation(frame);
    if (this.#append) frame.input('first', this.#append.first);
    if (capture) {
      frame.input('heads', capture.heads);
      frame.input('rows', capture.rows);
    }
    this.#placeAttention(frame);
    return frame;
  }

  /** @param {Frame} frame */
  #placeRotation(frame) {
    const { config, tables } = this.#model;
    if (!config.rope || !this.#call.change.rope) return;
    const past = this.#append ? this.#append.first[0] : 0;
    /** @param {number} _stream @param {number} _item @param {number} t */
    const at = (_stream, _item, t) => past + t;
    const { cos, sin } = tables.get(config.rope, { items: 1, T: this.#T, at, isRange: true }, null, null);
    frame.input('cos', cos);
    frame.input('sin', sin);
  }

  /** @param {Frame} frame */
  #placeAttention(frame) {
    const { config, steps } = this.#model;
    let scratch = steps.linearScratch(this.#T, Math.max(config.width, config.heads * config.headDim, config.inner));
    for (const kind of config.attention) {
      if (this.#attention.has(kind)) continue;
      const call = this.#describeAttention(kind);
      const fields = /** @type {Record<string, number>} */ (attentionFields(call));
      fields.q_token = this.#row;
      if (!call.cache) fields.k_token = fields.v_token = this.#row;
      // The same for all kinds; but one whose rows see everything has no offset.
      if (this.#at.offset === 0) frame.input('offset', call.shared.offset);
      if (call.weights && this.#at.weights === 0) {
        this.#weightsShape = call.weights.shape.slice(1);
        frame.place('weights', call.weights.count * kFloat);
      }
      this.#attention.set(kind, fields);
      scratch = Math.max(scratch, steps.attentionScratch({ ...fields, weights: this.#at.weights }));
    }
    frame.place('scratch', scratch);
  }

  /** @param {number} logitRows */
  #compute(logitRows) {
    const T = this.#T;
    const { config, parts, steps } = this.#model;
    const { x, y, tokens, logits, scratch } = this.#at;
    const { width, vocabulary } = config;
    const past = this.#append ? this.#append.first[0] : 0;
    const positions = parts.positions ? parts.positions + past * width * kFloat : 0;
    steps.embedding({ T, width, vocabulary, ...parts.embedding, tokens, positions, out: x });
    this.#keepHidden();
    parts.layers.forEach((layer, l) => {
      this.#attend(layer, l);
      this.#transform(layer);
      this.#keepHidden();
    });
    const last = x + (T - logitRows) * width * kFloat;
    steps.norm(logitRows, width, config, last, parts.norm, y);
    steps.linear(logitRows, parts.head, y, logits, 0, scratch);
  }

  /** x += out(attention(qkv(norm(x)))) @param {LayerParts} layer @param {number} l */
  #attend(layer, l) {
    const T = this.#T;
    const { config, steps } = this.#model;
    const { width, heads, kvHeads, headDim } = config;
    const { x, y, qkv, mixed, scratch, cos, sin } = this.#at;
    const row = this.#row;
    const k = qkv + heads * headDim * kFloat;
    steps.norm(T, width, config, x, layer.attentionNorm, y);
    steps.linear(T, layer.qkv, y, qkv, 0, scratch);
    if (config.hasQkNorm) {
      for (let t = 0; t < T; ++t) {
        const skip = t * row * kFloat;
        steps.headNorm(heads, headDim, config, qkv + skip, layer.qNorm);
        steps.headNorm(kvHeads, headDim, config, k + skip, layer.kNorm);
      }
    }
    // Queries and keys stand side by side: they turn in one go.
    if (config.rope && this.#call.change.rope) {
      steps.rope(T, heads + kvHeads, headDim, config.rope.rotaryDim, qkv, row, cos, sin);
    }
    this.#keepProjected('queries', qkv, heads);
    this.#keepProjected('keys', k, kvHeads);
    this.#keepProjected('values', k + kvHeads * headDim * kFloat, kvHeads);
    this.#mix(l, k, k + kvHeads * headDim * kFloat);
    for (const head of this.#disabled[l]) steps.clear(mixed + head * headDim * kFloat, T, headDim, heads * headDim);
    steps.linear(T, layer.out, mixed, x, x, scratch);
  }

  /** The attention itself; keys and values go through the cache where there is one. @param {number} l @param {number} k @param {number} v */
  #mix(l, k, v) {
    const { config, steps } = this.#model;
    const { cache, capture } = this.#call;
    const { qkv, mixed, scratch, offset, first, weights, heads, rows } = this.#at;
    const fields = /** @type {Record<string, number>} */ (this.#attention.get(config.attention[l]));
    const isKept = capture?.layers.has(l) ?? false;
    fields.q = qkv;
    fields.out = mixed;
    fields.k = k;
    fields.v = v;
    fields.offset = offset;
    fields.weights = isKept ? weights : 0;
    fields.heads = heads;
    fields.rows = rows;
    fields.scratch = scratch;
    if (cache && this.#append) {
      const { storage } = cache[l];
      steps.append({ ...this.#append, state: cache[l] }, { k, v, first, length: 0 });
      fields.k = pointerOf(storage.keys);
      fields.v = pointerOf(storage.values);
      fields.k_scale = storage.keyScales ? pointerOf(storage.keyScales) : 0;
      fields.v_scale = storage.valueScales ? pointerOf(storage.valueScales) : 0;
    }
    steps.attention(fields);
    if (capture && isKept) {
      this.#weights.push({
        layer: l,
        heads: [...capture.heads],
        rows: [...capture.rows],
        weights: steps.read(this.#context.fn, weights, this.#weightsShape),
      });
    }
  }

  /** x += down(act(gate(norm(x))) · up(norm(x))) @param {LayerParts} layer */
  #transform(layer) {
    const T = this.#T;
    const { config, steps } = this.#model;
    const { x, y, gate, up, scratch } = this.#at;
    const count = T * config.inner;
    steps.norm(T, config.width, config, x, layer.mlpNorm, y);
    steps.linear(T, layer.up, y, up, 0, scratch);
    if (layer.gate) {
      steps.linear(T, layer.gate, y, gate, 0, scratch);
      steps.activation({ count, kind: config.activation, x: gate, gate: up, out: up });
    } else {
      steps.activation({ count, kind: config.activation, x: up, gate: 0, out: up });
    }
    steps.linear(T, layer.down, up, x, x, scratch);
  }

  /** As [heads, T, headDim]. @param {Projected} name @param {number} at @param {number} heads */
  #keepProjected(name, at, heads) {
    if (!this.#call[name]) return;
    const { config, steps } = this.#model;
    this.#projected[name] ??= [];
    this.#projected[name].push(steps.heads(at, heads, this.#T, config.headDim, this.#row));
  }

  #keepHidden() {
    if (!this.#call.hidden) return;
    const { config, steps } = this.#model;
    this.#hidden.push(steps.read(this.#context.fn, this.#at.x, [this.#T, config.width]));
  }
}
