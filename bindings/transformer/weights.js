// A model's weights: found by name, checked against the config, and brought into the memory of the instance once.
import { list, operand, sameShape } from '../check.js';
import { refuse } from '../errors.js';
import { typeNumber } from '../memory.js';
import { readSafetensors } from '../safetensors.js';
import { Resident } from '../tensor.js';
import { isIgnored, shortName } from './names.js';

/** @import { Context, Operand } from '../check.js' */
/** @import { TensorData } from '../types.js' */
/** @import { WasmBackend } from '../wasm-backend.js' */
/** @import { ModelConfig } from './config.js' */
/** @import { Tensor } from '../tensor.js' */
/** @import { Place, Steps } from './steps.js' */
/** @import { LayerSlots, ModelSlots, Norm, Projection, Slot } from './names.js' */

/** A linear layer; 0 for a bias that there isn't. @typedef {{ N: number, K: number, packed: Place, bias: Place }} LinearPart */

/** @typedef {{ weight: Place, bias: Place }} NormPart */

/**
 * @typedef {object} LayerParts
 * @property {NormPart} attentionNorm
 * @property {LinearPart} qkv @property {Place} qNorm @property {Place} kNorm @property {LinearPart} out
 * @property {NormPart} mlpNorm
 * @property {LinearPart | null} gate @property {LinearPart} up @property {LinearPart} down
 */

/**
 * Where everything stands in memory.
 * @typedef {object} ModelParts
 * @property {{ table: Place, packed: Place, type: number }} embedding one of the two
 * @property {Place} positions
 * @property {LayerParts[]} layers
 * @property {NormPart} norm
 * @property {LinearPart} head
 */

/** @param {unknown} value @returns {value is ArrayBuffer | ArrayBufferView} */
const isBytes = (value) => ArrayBuffer.isView(value) || Object.prototype.toString.call(value).endsWith('ArrayBuffer]');

/**
 * Every tensor of the model, of the right size, none missing and none too many. Nothing is allocated.
 * @param {Context} context @param {ModelConfig} config @param {ModelSlots} slots @param {unknown} weights
 * @returns {Map<Slot, Operand>}
 */
export function checkWeights(context, config, slots, weights) {
  const { fn } = context;
  const sources = Array.isArray(weights) ? weights : [weights];
  const found = collect(fn, config, sources);
  /** @type {Map<Slot, Operand>} */
  const operands = new Map();
  for (const slot of allSlots(slots)) {
    const short = shortName(config, slot.name);
    const entry = found.get(short);
    if (!entry) {
      // If it is there in a type that was passed over, this says so.
      for (const source of sources) if (isBytes(source)) readSafetensors(source);
      const rule = `weights must hold ${slot.name} of shape ${list(slot.shape)}`;
      return refuse(
        'INVALID_OPTION',
        fn,
        rule,
        [...found.values()].map(({ name }) => name),
      );
    }
    const given = operand(context, entry.name, entry.tensor);
    if (!sameShape(given.shape, slot.shape)) {
      refuse('INVALID_SHAPE', fn, `${entry.name} must have shape ${list(slot.shape)}`, given.shape);
    }
    operands.set(slot, given);
    found.delete(short);
  }
  for (const { name } of found.values()) {
    refuse('INVALID_OPTION', fn, 'weights must hold the tensors that config asks for alone', name);
  }
  return operands;
}

/**
 * The tensors of all sources by their short names.
 * @param {string} fn @param {ModelConfig} config @param {readonly unknown[]} sources
 * @returns {Map<string, { name: string, tensor: unknown }>}
 */
function collect(fn, config, sources) {
  /** @type {Map<string, { name: string, tensor: unknown }>} */
  const found = new Map();
  for (const source of sources) {
    if (typeof source !== 'object' || source === null || Array.isArray(source)) {
      refuse('INVALID_OPTION', fn, 'weights must be tensors by name, or the bytes of safetensors files', source);
    }
    // Masks and the like, which nothing here needs, often have types of their own.
    const tensors = isBytes(source) ? readSafetensors(source, { skipUnsupported: true }) : source;
    for (const [name, tensor] of Object.entries(tensors)) {
      const short = shortName(config, name);
      if (isIgnored(config, short)) continue;
      if (found.has(short)) refuse('INVALID_OPTION', fn, 'weights must hold each tensor once', name);
      found.set(short, { name, tensor });
    }
  }
  return found;
}

/** @param {ModelSlots} slots @returns {Slot[]} */
function allSlots({ embedding, positions, layers, norm, head }) {
  const all = [embedding, positions, ...layers.flatMap(layerSlots), ...normSlots(norm), ...projectionSlots(head)];
  return all.filter((slot) => slot !== null);
}

/** @param {LayerSlots} layer @returns {(Slot | null)[]} */
const layerSlots = ({ attentionNorm, qkv, qNorm, kNorm, out, mlpNorm, gate, up, down }) => [
  ...normSlots(attentionNorm),
  ...projectionSlots(qkv),
  ...[qNorm, kNorm],
  ...projectionSlots(out),
  ...normSlots(mlpNorm),
  ...[gate, up, down].flatMap(projectionSlots),
];

/** @param {Norm} norm */
const normSlots = ({ weight, bias }) => [weight, bias];

/** @param {Projection | null} projection */
const projectionSlots = (projection) => (projection ? [...projection.weights, ...projection.biases] : []);

/** Brings weights into memory, and keeps account of what has to be given back. */
export class Packer {
  #context;
  #steps;
  #operands;
  /** @type {Resident[]} */
  residents = [];

  /** @param {Context & { backend: WasmBackend }} context @param {Steps} steps @param {Map<Slot, Operand>} operands */
  constructor(context, steps, operands) {
    this.#context = context;
    this.#steps = steps;
    this.#operands = operands;
  }

  /** Bytes of all weights, in the types that they come in. */
  get totalBytes() {
    return [...this.#operands.values()].reduce((sum, given) => sum + bytesIn(given), 0);
  }

  /** How many parameters there are. */
  get parameters() {
    return [...this.#operands.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** Resident tensors that have to be turned are read first, because on the GPU that takes its time. */
  async fetch() {
    const { backend, fn } = this.#context;
    for (const [slot, given] of this.#operands) {
      if (!slot.isTransposed || !given.storage) continue;
      const { data } = await backend.run(() => backend.read(fn, given));
      this.#operands.set(slot, { ...given, storage: null, data, start: 0 });
    }
  }

  /**
   * The whole model, part by part: yields the bytes that a part has taken in, and its name.
   * @param {ModelSlots} slots
   * @returns {Generator<{ name: string, bytes: number }, ModelParts>}
   */
  *pack(slots) {
    const { embedding } = slots;
    // Where both ends of the model share the table it stands in memory once, as the last projection reads it.
    const shared = slots.head ? null : yield* this.#linear({ weights: [embedding], biases: [] });
    const own = shared ? null : this.#tensor(embedding, false);
    if (own) yield this.#done(embedding);
    const positions = slots.positions ? this.#float32(slots.positions) : 0;
    if (slots.positions) yield this.#done(slots.positions);
    /** @type {LayerParts[]} */
    const layers = [];
    for (const layer of slots.layers) {
      const attentionNorm = yield* this.#norm(layer.attentionNorm);
      const qkv = yield* this.#linear(layer.qkv);
      const qNorm = layer.qNorm ? this.#float32(layer.qNorm) : 0;
      const kNorm = layer.kNorm ? this.#float32(layer.kNorm) : 0;
      for (const slot of [layer.qNorm, layer.kNorm]) if (slot) yield this.#done(slot);
      const out = yield* this.#linear(layer.out);
      const mlpNorm = yield* this.#norm(layer.mlpNorm);
      const gate = layer.gate ? yield* this.#linear(layer.gate) : null;
      const up = yield* this.#linear(layer.up);
      const down = yield* this.#linear(layer.down);
      layers.push({ attentionNorm, qkv, qNorm, kNorm, out, mlpNorm, gate, up, down });
    }
    const norm = yield* this.#norm(slots.norm);
    const head = shared ?? (yield* this.#linear(/** @type {Projection} */ (slots.head)));
    const table = { table: own?.place ?? 0, packed: shared?.packed ?? 0, type: own?.type ?? 0 };
    return { embedding: table, positions, layers, norm, head };
  }

  /** @param {Slot} slot @returns {Operand} */
  #operand(slot) {
    return /** @type {Operand} */ (this.#operands.get(slot));
  }

  /** @param {Slot} slot */
  #done(slot) {
    return { name: slot.name, bytes: bytesIn(this.#operand(slot)) };
  }

  /** @template {Resident} R @param {R} resident @returns {R} */
  #keep(resident) {
    this.residents.push(resident);
    return resident;
  }

  /** @param {Resident} resident */
  #storageOf(resident) {
    const { backend, fn } = this.#context;
    return Resident.storageOf(resident, backend, fn, 'weights');
  }

  /** A tensor as it lies. @param {Slot} slot @param {boolean} isWide float32 in place of its own type */
  #tensor(slot, isWide) {
    const { backend, fn } = this.#context;
    const given = this.#operand(slot);
    const isNarrow = given.dtype !== 'float32';
    /** @type {Tensor} */
    const tensor = this.#keep(isWide && isNarrow ? this.#steps.widened(fn, given) : copyOf(backend, fn, given));
    const { dtype } = tensor;
    return { place: this.#steps.tensorAt(this.#storageOf(tensor), dtype), type: typeNumber(dtype) };
  }

  /** @param {Slot} slot @returns {Place} */
  #float32(slot) {
    return this.#tensor(slot, true).place;
  }

  /** @param {Norm} norm @returns {Generator<{ name: string, bytes: number }, NormPart>} */
  *#norm({ weight, bias }) {
    const part = { weight: this.#float32(weight), bias: bias ? this.#float32(bias) : 0 };
    yield this.#done(weight);
    if (bias) yield this.#done(bias);
    return part;
  }

  /** @param {Projection} projection @returns {Generator<{ name: string, bytes: number }, LinearPart>} */
  *#linear({ weights, biases }) {
    const { backend, fn } = this.#context;
    const weight = weights.map((slot) => (slot.isTransposed ? this.#turned(slot) : this.#operand(slot)));
    const bias = biases.length > 0 ? biases.map((slot) => this.#operand(slot)) : null;
    const N = weight.reduce((sum, { shape }) => sum + shape[0], 0);
    const K = weight[0].shape[1];
    const packed = this.#storageOf(this.#keep(backend.packLinear(fn, { N, K, weight, bias })));
    for (const slot of [...weights, ...biases]) yield this.#done(slot);
    return { N, K, ...this.#steps.linearAt(packed) };
  }

  /** A weight stored [in, out], as [out, in]. @param {Slot} slot @returns {Operand} */
  #turned(slot) {
    const given = this.#operand(slot);
    const [rows, columns] = given.shape;
    const data = transpose(/** @type {TensorData} */ (given.data), rows, columns);
    return { ...given, data, shape: [columns, rows] };
  }
}

/** A resident copy, without one in between where it can be. @param {WasmBackend} backend @param {string} fn @param {Operand} given */
const copyOf = (backend, fn, given) => (given.data ? backend.tensor(fn, given.data, given) : backend.keep(fn, given));

/** @param {Operand} operand */
const bytesIn = ({ dtype, count }) => count * (dtype === 'float32' ? 4 : 2);

const kBlock = 32;

/** In blocks, so that neither side jumps about in more lines than the cache holds. @param {TensorData} data @param {number} rows @param {number} columns @returns {TensorData} */
function transpose(data, rows, columns) {
  const from = /** @type {Float32Array} */ (data);
  const to = new /** @type {Float32ArrayConstructor} */ (data.constructor)(rows * columns);
  for (let top = 0; top < rows; top += kBlock) {
    const bottom = Math.min(top + kBlock, rows);
    for (let left = 0; left < columns; left += kBlock) {
      const right = Math.min(left + kBlock, columns);
      for (let column = left; column < right; ++column) {
        for (let row = top; row < bottom; ++row) to[column * rows + row] = from[row * columns + column];
      }
    }
  }
  return to;
}
