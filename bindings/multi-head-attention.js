// A multi-head attention layer over resident memory: project, turn, attend, project; no intermediate leaves the module.
import { linearCall } from './check-linear.js';
import {
  describeForward,
  kProjections,
  layerConfig,
  notLoaded,
  parametersOf,
  pending,
  projectionShapes,
} from './check-multi-head.js';
import { ropeCall, rotate, styleOf } from './check-rope.js';
import { AttentionError } from './errors.js';
import { hideWithoutDispose, Resident, Tensor } from './tensor.js';

/** @import { Context, Operand } from './check.js' */
/** @import { ForwardCall, LayerConfig, Projection, ProjectionParameters } from './check-multi-head.js' */
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
  /** What was loaded, for stateDict(). @type {Map<string, TensorLike>} */
  #state = new Map();
  #disposed = false;

  /**
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
      throw new AttentionError('DISPOSED', `${fn}: the layer must not be used after dispose(), got a disposed one`);
    }
    return { fn, backend: this.#backend };
  }

  /**
   * Sets the parameters. Weights are [out, in] as in PyTorch, of any float type; they are computed with in float32.
   *
   * Names: `q_proj.weight`, `k_proj.weight`, `v_proj.weight`, `out_proj.weight` (or `o_proj.weight`), their `.bias`;
   * PyTorch's packed `in_proj_weight` and `in_proj_bias` (the rows of q, then k, then v), and its `q_proj_weight`,
   * `k_proj_weight`, `v_proj_weight`. When this throws, the layer keeps the parameters it had.
   *
   * PyTorch's module masks with true = ignore; here true = attend, as in PyTorch's scaled_dot_product_attention.
   * @param {Readonly<Record<string, TensorLike | Tensor>>} dict
   * @throws {AttentionError} INVALID_OPTION: a missing or surplus tensor, by name; INVALID_SHAPE: one of the wrong size
   */
  loadStateDict(dict) {
    const context = this.#context('loadStateDict');
    const parameters = parametersOf(context, this.#config, dict);
    const shapes = projectionShapes(this.#config);
    /** @type {Partial<Record<Projection, PackedLinear>>} */
    const layers = {};
    /** @type {Map<string, TensorLike>} */
    const state = new Map();
    try {
      for (const name of kProjections) {
        const [N, K] = shapes[name];
        layers[name] = this.#backend.packLinear(context.fn, { N, K, ...parameters[name] });
        this.#remember(state, name, parameters[name]);
      }
    } catch (error) {
      for (const layer of Object.values(layers)) layer.dispose();
      throw error;
    }
    this.#release();
    this.#layers = /** @type {Record<Projection, PackedLinear>} */ (layers);
    this.#state = state;
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
    const { fn } = this.#context('stateDict');
    if (!this.#layers) throw notLoaded(fn);
    return Object.fromEntries(
      [...this.#state].map(([name, { data, shape, dtype }]) => [
        name,
        { data: /** @type {TensorData} */ (data.slice()), shape: [...shape], dtype },
      ]),
    );
  }

  /**
   * out_proj(attention(rope(q_proj(x)), rope(k_proj(c)), v_proj(c))), where c is the context, or x itself.
   *
   * With `isCausal: true`, self-attention is causal by position in x, also for items with `keyLengths`. Rows of x
   * beyond an item's key length are computed as well; what they hold means nothing.
   * @template {TensorData} [T=Float32Array]
   * @param {TensorLike<T> | Tensor<T>} x [B, T, dModel] or [T, dModel]
   * @param {ForwardOptions | null} [options]
   * @returns {{ output: Result<T>, weights?: Float32Result }} output of the shape and type of x; weights
   *   [B, numHeads, T, Tk] (without B where x has none), or what `needWeights` chose
   * @throws {AttentionError} INVALID_SHAPE, INVALID_OPTION, INVALID_DTYPE, OUT_OF_MEMORY, DISPOSED
   */
  forward(x, options) {
    const context = this.#context('forward');
    const layers = this.#layers;
    if (!layers) throw notLoaded(context.fn);
    const call = describeForward(context, this.#config, x, options);
    /** @type {Resident[]} */
    const held = [];
    try {
      return /** @type {{ output: Result<T>, weights?: Float32Result }} */ (this.#run(context, layers, call, held));
    } finally {
      for (const resident of held) resident.dispose();
    }
  }

  /**
   * @param {Context} context @param {Record<Projection, PackedLinear>} layers @param {ForwardCall} call
   * @param {Resident[]} held takes what has to be disposed of afterwards
   */
  #run(context, layers, call, held) {
    const { attention, rotation, out } = call;
    /** @param {Projection} name @param {Operand} source @param {Operand} into */
    const project = (name, source, into) => this.#project(context, layers[name], source, into, held);
    const [x, key, value] = this.#bring(context, [call.x, call.key, call.value], held);
    attention.q = project('q', x, attention.q);
    attention.k = project('k', key, attention.k);
    attention.v = project('v', value, attention.v);
    if (rotation) {
      const tables = rotate(this.#tables, rotation, false);
      const style = styleOf(context.fn, this.#config.rope?.style);
      for (const operand of [attention.q, attention.k]) this.#turn(context, operand, style, rotation, tables);
    }
    const between = this.#resident(context, [...attention.q.shape], held);
    attention.out = asOutput(context, between);
    const { weights } = this.#backend.attention(attention);
    const { shape } = out;
    const rows = { ...asOperand(context, between), shape: [...shape.slice(0, -1), layers.out.shape[1]] };
    const [N, K] = layers.out.shape;
    const last = linearCall(context, rows, { N, K, weight: null, bias: null }, storageOf(context, layers.out), {});
    const output = this.#backend.linear({ ...last, out });
    return weights ? { output, weights } : { output };
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
    for (const layer of Object.values(this.#layers ?? {})) layer.dispose();
    this.#layers = null;
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

/** @param {Context} context @param {Resident} resident */
const storageOf = ({ backend, fn }, resident) => Resident.storageOf(resident, backend, fn, 'a tensor of the layer');

/** @param {Context} context @param {Tensor} tensor @returns {Operand} */
const asOperand = (context, tensor) => ({ ...pending(tensor.shape), storage: storageOf(context, tensor) });

/** @param {Context} context @param {Tensor} tensor */
const asOutput = (context, tensor) => ({ ...asOperand(context, tensor), tensor });
