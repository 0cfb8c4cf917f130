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
/** @import { LayerSlots, ModelSlots, Norm, Projection, Slot } from './names.js' */

/** Addresses of a linear layer; 0 for a bias that there isn't. @typedef {{ N: number, K: number, packed: number, bias: number }} LinearPart */

/** @typedef {{ weight: number, bias: number }} NormPart */

/**
 * @typedef {object} LayerParts
 * @property {NormPart} attentionNorm
 * @property {LinearPart} qkv @property {number} qNorm @property {number} kNorm @property {LinearPart} out
 * @property {NormPart} mlpNorm
 * @property {LinearPart | null} gate @property {LinearPart} up @property {LinearPart} down
 */

/**
 * Where everything stands in memory.
 * @typedef {object} ModelParts
 * @property {{ table: number, packed: number, type: number }} embedding one of the two
 * @property {number} positions
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
  #operands;
  /** @type {Resident[]} */
  residents = [];

  /** @param {Context & { backend: WasmBackend }} context @param {Map<Slot, Operand>} operands */
  constructor(context, operands) {
    this.#context = context;
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

  /**
   * The whole model, part by part: yields the bytes that a part has taken in, and its name.
   * @param {ModelSlots} slots
   * @returns {Generator<{ name: string, bytes: number }, ModelParts>}
   */
  *pack(slots) {
    const { embedding } = slots;
    // Where both ends of the model share the table it stands in memory once, as the last projection reads it.
    const shared = slots.head ? null : yield* this.#linear({ weights: [embedding], biases: [] });
    const own = shared ? { pointer: 0, type: 0 } : this.#tensor(embedding, false);
    if (!shared) yield this.#done(embedding);
    const positions = slots.positions ? this.#tensor(slots.positions, true).pointer : 0;
    if (slots.positions) yield this.#done(slots.positions);
    /** @type {LayerParts[]} */
    const layers = [];
    for (const layer of slots.layers) {
      const attentionNorm = yield* this.#norm(layer.attentionNorm);
      const qkv = yield* this.#linear(layer.qkv);
      const qNorm = layer.qNorm ? this.#tensor(layer.qNorm, true).pointer : 0;
      const kNorm = layer.kNorm ? this.#tensor(layer.kNorm, true).pointer : 0;
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
    const table = { table: own.pointer, packed: shared?.packed ?? 0, type: own.type };
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
  #addressOf(resident) {
    const { backend, fn } = this.#context;
    return /** @type {{ pointer: number, bias?: number }} */ (
      /** @type {unknown} */ (Resident.storageOf(resident, backend, fn, 'weights'))
    );
  }

  /**
   * A tensor as it lies, in its own type or in float32.
   * @param {Slot} slot @param {boolean} inFloat32
   */
  #tensor(slot, inFloat32) {
    const { backend, fn } = this.#context;
    const given = this.#operand(slot);
    const data = given.data ?? backend.read(fn, given).data;
    const isWide = given.dtype === 'float32';
    if (isWide || !inFloat32) {
      const resident = this.#keep(backend.tensor(fn, data, given));
      return { pointer: this.#addressOf(resident).pointer, type: typeNumber(given.dtype) };
    }
    const wide = { ...given, dtype: /** @type {const} */ ('float32'), isFloat16Array: false };
    const resident = this.#keep(backend.tensor(fn, undefined, wide));
    const narrow = backend.tensor(fn, data, given);
    const { pointer } = this.#addressOf(resident);
    backend.module._convert(this.#addressOf(narrow).pointer, typeNumber(given.dtype), pointer, 0, given.count);
    narrow.dispose();
    return { pointer, type: 0 };
  }

  /** @param {Norm} norm @returns {Generator<{ name: string, bytes: number }, NormPart>} */
  *#norm({ weight, bias }) {
    const part = { weight: this.#tensor(weight, true).pointer, bias: bias ? this.#tensor(bias, true).pointer : 0 };
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
    const { pointer, bias: biasPointer } = this.#addressOf(this.#keep(backend.packLinear(fn, { N, K, weight, bias })));
    for (const slot of [...weights, ...biases]) yield this.#done(slot);
    return { N, K, packed: pointer, bias: biasPointer ?? 0 };
  }

  /** A weight stored [in, out], as [out, in]. @param {Slot} slot @returns {Operand} */
  #turned(slot) {
    const { backend, fn } = this.#context;
    const given = this.#operand(slot);
    const [rows, columns] = given.shape;
    const data = transpose(given.data ?? backend.read(fn, given).data, rows, columns);
    return { ...given, storage: null, data, shape: [columns, rows] };
  }
}

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
