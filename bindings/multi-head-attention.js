// A multi-head attention layer over resident memory: project, turn, attend, project; no intermediate leaves the module.
import { describeForward } from './check-forward.js';
import { linearCall } from './check-linear.js';
import { layerConfig, notLoaded, pending } from './check-multi-head.js';
import { ropeCall, rotate, styleOf } from './check-rope.js';
import { kProjections, parametersOf, projectionShapes } from './check-state-dict.js';
import { disposedError } from './errors.js';
import { hideWithoutDispose, Resident, Tensor } from './tensor.js';

/** @import { Context, Operand } from './check.js' */
/** @import { AppendCall } from './check-cache.js' */
/** @import { ForwardCall } from './check-forward.js' */
/** @import { Projection, ProjectionParameters } from './check-state-dict.js' */
/** @import { RopeTables } from './rope-tables.js' */
/** @import { PackedLinear } from './tensor.js' */
/** @import { Float32Result, ForwardOptions, MultiHeadAttentionOptions, Result, TensorData, TensorLike } from './types.js' */
/** @import { WasmBackend } from './wasm-backend.js' */

/**
 * Multi-head attention with its four projections, as a layer that holds its parameters in the memory of the instance.
 * Made by `attention.multiHeadAttention()`.
 */
export class MultiHeadAttention {
  #backend;
  #tables;
  #config;
  /** @type {Record<Projection, PackedLinear> | null} */
  #layers = null;
  /** Weights of the norms of queries and keys. @type {{ q: Tensor, k: Tensor } | null} */
  #norms = null;
  /** What was loaded, for stateDict(). @type {Map<string, TensorLike>} */
  #state = new Map();
  #disposed = false;

  /**
   * @hidden
   * @param {Context & { backend: WasmBackend }} context @param {RopeTables} tables
   * @param {MultiHeadAttentionOptions} options
   */
  constructor(context, tables, options) {
    this.#backend = context.backend;
    this.#tables = tables;
    this.#config = layerConfig(context, options);
  }

  /** @param {string} method @returns {Context & { backend: WasmBackend }} */
  #context(method) {
    const fn = `MultiHeadAttention.${method}`;
    if (this.#disposed || this.#backend.disposed) {
      throw disposedError(fn, 'the layer');
    }
    return { fn, backend: this.#backend };
  }

  /**
   * Sets the parameters. Weights are [out, in] as in PyTorch, of any float type; they are computed with in float32.
   *
   * Names: `q_proj.weight`, `k_proj.weight`, `v_proj.weight`, `out_proj.weight` (or `o_proj.weight`), their `.bias`;
   * PyTorch's packed `in_proj_weight` and `in_proj_bias` (the rows of q, then k, then v), and its `q_proj_weight`,
   * `k_proj_weight`, `v_proj_weight`; with `qkNorm`, `q_norm.weight` and `k_norm.weight`. When this throws, the layer keeps the parameters it had.
   *
   * PyTorch's module masks with true = ignore; here true = attend, as in PyTorch's scaled_dot_product_attention.
   * @param {Readonly<Record<string, TensorLike | Tensor>>} dict
   * @throws {AttentionError} INVALID_OPTION: a missing or surplus tensor, by name; INVALID_SHAPE: one of the wrong size
   */
  loadStateDict(dict) {
    return this.#backend.run(() => this.#load(this.#context('loadStateDict'), dict));
  }

  /** @param {Context} context @param {Readonly<Record<string, TensorLike | Tensor>>} dict */
  #load(context, dict) {
    const { projections, norms } = parametersOf(context, this.#config, dict);
    const shapes = projectionShapes(this.#config);
    /** @type {Partial<Record<Projection, PackedLinear>>} */
    const layers = {};
    /** @type {Partial<Record<'q' | 'k', Tensor>>} */
    const kept = {};
    /** @type {Map<string, TensorLike>} */
    const state = new Map();
    try {
      for (const name of kProjections) {
        const [N, K] = shapes[name];
        layers[name] = this.#backend.packLinear(context.fn, { N, K, ...projections[name] });
        this.#remember(state, name, projections[name]);
      }
      for (const name of norms ? /** @type {const} */ (['q', 'k']) : []) {
        const weight = /** @type {any} */ (norms)[name];
        state.set(`${name}_norm.weight`, this.#backend.read(context.fn, weight));
        kept[name] = this.#backend.keep(context.fn, weight);
      }
    } catch (error) {
      for (const resident of [...Object.values(layers), ...Object.values(kept)]) resident.dispose();
      throw error;
    }
    this.#release();
    this.#layers = /** @type {Record<Projection, PackedLinear>} */ (layers);
    this.#state = state;
    this.#norms = norms && /** @type {{ q: Tensor, k: Tensor }} */ (kept);
  }

  /** @param {Map<string, TensorLike>} state @param {Projection} name @param {ProjectionParameters} parameters */
  #remember(state, name, { weight, bias }) {
    state.set(`${name}_proj.weight`, this.#backend.read('MultiHeadAttention.loadStateDict', weight));
    if (bias) state.set(`${name}_proj.bias`, this.#backend.read('MultiHeadAttention.loadStateDict', bias));
  }

  /**
   * The parameters by PyTorch's names for separate projections, as copies in the types they were loaded in.
   * @returns {Record<string, TensorLike>}
   * @throws {AttentionError} INVALID_OPTION: nothing was loaded yet; DISPOSED
   */
  stateDict() {
    return this.#backend.run(() => {
      const { fn } = this.#context('stateDict');
      if (!this.#layers) throw notLoaded(fn);
      return Object.fromEntries(
        [...this.#state].map(([name, { data, shape, dtype }]) => [
          name,
          { data: /** @type {TensorData} */ (data.slice()), shape: [...shape], dtype },
        ]),
      );
    });
  }

  /**
   * out_proj(attention(rope(q_proj(x)), rope(k_proj(c)), v_proj(c))), where c is the context, or x itself.
   *
   * With `isCausal: true`, self-attention is causal by position in x, also for items with `keyLengths`. Rows of x
   * beyond an item's key length are computed as well; what they hold means nothing.
   *
   * With `cache`, x are the next tokens: they are turned by their positions and appended, and attend to all that is held;
   * `isCausal` is then at the end, whatever its alignment. After an error the cache holds what it held before.
   * @template {TensorData} [T=Float32Array]
   * @param {TensorLike<T> | Tensor<T>} x [B, T, dModel] or [T, dModel]
   * @param {ForwardOptions | null} [options]
   * @returns {{ output: Result<T>, weights?: Float32Result }} output of the shape and type of x; weights
   *   [B, numHeads, T, Tk] (without B where x has none), or what `needWeights` chose
   * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  forward(x, options) {
    /** @type {() => void} */
    let undo = () => {};
    return this.#backend.run(
      () => {
        const context = this.#context('forward');
        const layers = this.#layers;
        if (!layers) throw notLoaded(context.fn);
        const call = describeForward(context, this.#config, x, options);
        if (call.append) undo = takingBack(call.append);
        /** @type {Resident[]} */
        const held = [];
        try {
          return /** @type {{ output: Result<T>, weights?: Float32Result }} */ (this.#run(context, layers, call, held));
        } finally {
          for (const resident of held) resident.dispose();
        }
      },
      () => undo(),
    );
  }

  /**
   * @param {Context} context @param {Record<Projection, PackedLinear>} layers @param {ForwardCall} call
   * @param {Resident[]} held takes what has to be disposed of afterwards
   */
  #run(context, layers, call, held) {
    const { rotation, out } = call;
    /** @param {Projection} name @param {Operand} source @param {Operand} into */
    const project = (name, source, into) => this.#project(context, layers[name], source, into, held);
    const [x, key, value] = this.#bring(context, [call.x, call.key, call.value], held);
    const q = project('q', x, call.q);
    const k = project('k', key, call.k);
    const v = project('v', value, call.v);
    this.#normalise(context, q, this.#norms?.q);
    this.#normalise(context, k, this.#norms?.k);
    if (rotation) {
      const tables = rotate(this.#tables, rotation, false);
      const style = styleOf(context.fn, this.#config.rope?.style);
      for (const operand of [q, k]) this.#turn(context, operand, style, rotation, tables);
    }
    const between = this.#resident(context, [...q.shape], held);
    const { weights } = this.#attend(call, { q, k, v }, asOutput(context, between));
    const { shape } = out;
    const rows = { ...asOperand(context, between), shape: [...shape.slice(0, -1), layers.out.shape[1]] };
    const [N, K] = layers.out.shape;
    const last = linearCall(context, rows, { N, K, weight: null, bias: null }, storageOf(context, layers.out), {});
    const output = this.#backend.linear({ ...last, out });
    return weights ? { output, weights } : { output };
  }

  /**
   * Attention over the new tokens alone, or over a cache that takes them first; which gives them back when that fails.
   * @param {ForwardCall} call @param {{ q: Operand, k: Operand, v: Operand }} operands
   * @param {import('./check.js').Output} out
   */
  #attend({ attention, append }, { q, k, v }, out) {
    if (!append) return this.#backend.attention({ ...attention, q, k, v, out });
    const { state, next } = append;
    const undo = takingBack(append);
    this.#backend.append({ ...append, k, v });
    state.held = next;
    try {
      return this.#backend.attention({ ...attention, q, out });
    } catch (error) {
      undo();
      throw error;
    }
  }

  /** RMS over each head, in place. @param {Context} context @param {Operand} x @param {Tensor | undefined} tensor */
  #normalise(context, x, tensor) {
    if (!tensor) return;
    const { fn } = context;
    const weight = { ...pending(tensor.shape), dtype: tensor.dtype, storage: storageOf(context, tensor) };
    const width = this.#config.headDim;
    const epsilon = /** @type {number} */ (this.#config.normEpsilon);
    const out = { ...x, tensor: null };
    this.#backend.norm({ fn, rows: x.count / width, width, kind: 0, epsilon, x, weight, bias: null, out });
  }

  /**
   * Plain inputs are brought in once, although several projections read them.
   * @param {Context} context @param {Operand[]} operands @param {Resident[]} held
   * @returns {Operand[]}
   */
  #bring(context, operands, held) {
    /** @type {Map<Operand, Operand>} */
    const brought = new Map();
    for (const operand of operands) {
      if (operand.storage || brought.has(operand)) continue;
      const tensor = this.#backend.tensor(context.fn, operand.data, operand);
      held.push(tensor);
      brought.set(operand, { ...operand, data: null, storage: storageOf(context, tensor) });
    }
    return operands.map((operand) => brought.get(operand) ?? operand);
  }

  /** @param {Context} context @param {number[]} shape @param {Resident[]} held */
  #resident(context, shape, held) {
    const { count } = pending(shape);
    const tensor = this.#backend.tensor(context.fn, undefined, {
      shape,
      count,
      dtype: 'float32',
      isFloat16Array: false,
    });
    held.push(tensor);
    return tensor;
  }

  /**
   * @param {Context} context @param {PackedLinear} layer @param {Operand} source @param {Operand} into its shape
   * @param {Resident[]} held
   * @returns {Operand}
   */
  #project(context, layer, source, into, held) {
    const tensor = this.#resident(context, [...into.shape], held);
    const [N, K] = layer.shape;
    const packed = storageOf(context, layer);
    const call = linearCall(context, source, { N, K, weight: null, bias: null }, packed, {});
    this.#backend.linear({ ...call, out: asOutput(context, tensor) });
    return asOperand(context, tensor);
  }

  /**
   * @param {Context} context @param {Operand} operand [B, T, heads, headDim], turned in place @param {number} style
   * @param {import('./check-rope.js').Rotation} rotation @param {import('./rope-tables.js').Tables} tables
   */
  #turn(context, operand, style, rotation, tables) {
    const [B, T, H, D] = operand.shape;
    const sizes = { B, H, T, D, strides: { batch: T * H * D, head: D, token: H * D } };
    const out = { ...operand, tensor: null };
    this.#backend.rope(ropeCall(context.fn, sizes, style, rotation, tables, operand, out));
  }

  #release() {
    const residents = [...Object.values(this.#layers ?? {}), ...Object.values(this.#norms ?? {})];
    for (const resident of residents) resident.dispose();
    this.#layers = null;
    this.#norms = null;
  }

  /** Gives the memory of the parameters back. Twice is harmless; any other use after it throws DISPOSED. */
  dispose() {
    this.#release();
    this.#state.clear();
    this.#disposed = true;
  }

  /** `using` disposes by this name. */
  [Symbol.dispose]() {
    this.dispose();
  }
}

hideWithoutDispose(MultiHeadAttention);

/**
 * Makes a cache hold what it holds now, as long as nothing came after the append.
 * @param {AppendCall} append
 */
function takingBack({ state, next }) {
  const { positions } = state.held;
  return () => {
    // What a ring let go to make room is gone, but none of it is within the window of the next token.
    if (state.held === next) state.held = { positions, evicted: next.evicted };
  };
}

/** @param {Context} context @param {Resident} resident */
const storageOf = ({ backend, fn }, resident) => Resident.storageOf(resident, backend, fn, 'a tensor of the layer');

/** @param {Context} context @param {Tensor} tensor @returns {Operand} */
const asOperand = (context, tensor) => ({ ...pending(tensor.shape), storage: storageOf(context, tensor) });

/** @param {Context} context @param {Tensor} tensor */
const asOutput = (context, tensor) => ({ ...asOperand(context, tensor), tensor });
