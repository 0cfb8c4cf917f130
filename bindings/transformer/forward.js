// One forward pass, on either backend. All steps work in memory that the pass has for itself; what leaves it are the
// results alone. On the GPU the steps are recorded here, and the results have their data when the device is done.
//
//   x = embedding;  in each layer  x += out(attention(qkv(norm(x)))),  x += down(act(gate(norm(x))) · up(norm(x)))
//   logits = head(norm(x))
//
// Steps are not taken through the checked calls of the package, because a token of a small model takes less time than
// those checks.
import { describeOperands } from '../check-attention.js';
import { appendOperands, attendOperand } from '../check-cache.js';
import { pending } from '../check-multi-head.js';

/** @import { AttentionCall } from '../check-attention.js' */
/** @import { AppendCall, CacheState, Held } from '../check-cache.js' */
/** @import { Context, Operand } from '../check.js' */
/** @import { RopeTables } from '../rope-tables.js' */
/** @import { Float32Result } from '../types.js' */
/** @import { WasmBackend } from '../wasm-backend.js' */
/** @import { Frame } from '../frame.js' */
/** @import { LayerAttention, ModelConfig } from './config.js' */
/** @import { Place, Prepared, Steps } from './steps.js' */
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
  /** Of each kind of layer. @type {Map<LayerAttention, Prepared>} */
  #attention = new Map();
  /** Where everything stands. @type {Record<keyof ReturnType<typeof places>, Place>} */
  #at = places();
  /** What the cache held in each layer. @type {Held[]} */
  #before = [];
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
        if (cache && this.#append) {
          this.#before = cache.map(({ held }) => held);
          for (const state of cache) state.held = this.#append.next;
        }
        return {
          logits,
          ...(capture && { attention: this.#weights }),
          ...(hidden && { hidden: this.#hidden }),
          ...this.#projected,
        };
      },
    );
  }

  /** Where the device failed later: the cache holds what it held before, unless other calls have counted on this one. */
  undo() {
    this.#call.cache?.forEach((state, l) => {
      if (state.held === this.#append?.next) state.held = this.#before[l];
    });
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
    const k = pending([1, this.#T, kvHeads, headDim]);
    const call =
      cache && this.#append
        ? attendOperand(this.#context, cache[0], this.#append.next, q, options)
        : describeOperands(this.#context, { q, k, v: k }, options);
    // Queries, keys and values of a token stand side by side.
    const strides = { batch: 0, head: headDim, token: this.#row };
    const { weights } = call;
    return {
      ...call,
      qStrides: strides,
      ...(!call.cache && { kStrides: strides, vStrides: strides }),
      weights: weights && { ...weights, shape: weights.shape.slice(1) },
    };
  }

  /** Room for everything, and the inputs. @param {number} logitRows */
  #frame(logitRows) {
    const T = this.#T;
    const { config, steps } = this.#model;
    const { tokens } = this.#call;
    const frame = steps.frame(this.#context.fn, this.#at);
    frame.input('tokens', tokens);
    for (const name of ['x', 'y']) frame.place(name, T * config.width * kFloat);
    frame.place('qkv', T * this.#row * kFloat);
    frame.place('mixed', T * config.heads * config.headDim * kFloat);
    for (const name of config.isGated ? ['gate', 'up'] : ['up']) frame.place(name, T * config.inner * kFloat);
    frame.place('logits', logitRows * config.vocabulary * kFloat);
    this.#placeRotation(frame);
    if (this.#append) steps.prepareAppend(frame, this.#append);
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
    const { width, heads, headDim, inner, vocabulary } = config;
    const widths = [width, heads * headDim, inner];
    let scratch = steps.linearScratch(this.#T, Math.max(this.#row, 2 * inner, vocabulary), widths);
    for (const kind of config.attention) {
      if (this.#attention.has(kind)) continue;
      const prepared = steps.prepare(frame, this.#at, this.#describeAttention(kind));
      this.#attention.set(kind, prepared);
      scratch = Math.max(scratch, steps.attentionScratch(prepared, this.#at));
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
    const positions = parts.positions ? steps.at(parts.positions, past * width) : 0;
    steps.embedding({ T, width, vocabulary, ...parts.embedding, tokens, positions, out: x });
    this.#keepHidden();
    parts.layers.forEach((layer, l) => {
      this.#attend(layer, l);
      this.#transform(layer);
      this.#keepHidden();
    });
    const last = steps.at(x, (T - logitRows) * width);
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
    const k = steps.at(qkv, heads * headDim);
    const v = steps.at(k, kvHeads * headDim);
    steps.norm(T, width, config, x, layer.attentionNorm, y);
    steps.linear(T, layer.qkv, y, qkv, 0, scratch);
    if (config.hasQkNorm) {
      steps.headNorm(T, row, heads, headDim, config, qkv, layer.qNorm);
      steps.headNorm(T, row, kvHeads, headDim, config, k, layer.kNorm);
    }
    // Queries and keys stand side by side: they turn in one go.
    if (config.rope && this.#call.change.rope) {
      steps.rope(T, heads + kvHeads, headDim, config.rope.rotaryDim, qkv, row, cos, sin);
    }
    this.#keepProjected('queries', qkv, heads);
    this.#keepProjected('keys', k, kvHeads);
    this.#keepProjected('values', v, kvHeads);
    this.#mix(l, k, v);
    for (const head of this.#disabled[l]) steps.clear(steps.at(mixed, head * headDim), T, headDim, heads * headDim);
    steps.linear(T, layer.out, mixed, x, x, scratch);
  }

  /** The attention itself; keys and values go through the cache where there is one. @param {number} l @param {Place} k @param {Place} v */
  #mix(l, k, v) {
    const { config, steps } = this.#model;
    const { cache, capture } = this.#call;
    const prepared = /** @type {Prepared} */ (this.#attention.get(config.attention[l]));
    const state = cache ? cache[l] : null;
    if (state && this.#append) steps.append({ ...this.#append, state }, this.#at, k, v);
    const isKept = capture?.layers.has(l) ?? false;
    const weights = steps.attention(prepared, this.#at, k, v, state, isKept);
    if (capture && weights) {
      this.#weights.push({ layer: l, heads: [...capture.heads], rows: [...capture.rows], weights });
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

  /** As [heads, T, headDim]. @param {Projected} name @param {Place} at @param {number} heads */
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
