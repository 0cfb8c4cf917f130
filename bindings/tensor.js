/// <reference lib="esnext.disposable" preserve="true" />
// What outlives a call: resident tensors and packed weights. The storage behind them belongs to a backend.
import { AttentionError, disposedError, refuse } from './errors.js';

/** @import { Dtype, TensorData } from './types.js' */

/**
 * Memory that a backend holds for a Resident.
 * @typedef {object} Storage
 * @property {{ readonly disposed: boolean, readonly lost?: AttentionError | null }} owner the backend that can use it
 * @property {() => void} free gives the memory back; called once
 */

// The net under a forgotten dispose(): storage that nothing reaches any more is freed some time later.
const forgotten = new FinalizationRegistry((/** @type {Storage} */ storage) => {
  if (!storage.owner.disposed) storage.free();
});

/** Something that stays in a backend's memory until it is disposed of. */
export class Resident {
  /** @type {Storage | null} */
  #storage;

  /**
   * @hidden
   * @param {Storage} storage
   */
  constructor(storage) {
    this.#storage = storage;
    forgotten.register(this, storage, this);
  }

  /** True after dispose(), and after dispose() of the instance that made it. */
  get disposed() {
    return this.#storage === null || this.#storage.owner.disposed;
  }

  /** Gives the memory back. Twice is harmless; any other use after it throws DISPOSED. */
  dispose() {
    const storage = this.#storage;
    if (storage === null) return;
    this.#storage = null;
    forgotten.unregister(this);
    if (!storage.owner.disposed) storage.free();
  }

  /** `using` disposes by this name. */
  [Symbol.dispose]() {
    this.dispose();
  }

  /**
   * @hidden
   * The storage, for the backend `owner`.
   * @param {Resident} resident
   * @param {object} owner
   * @param {string} fn @param {string} argument
   * @returns {Storage}
   */
  static storageOf(resident, owner, fn, argument) {
    const storage = resident.#storage;
    if (storage === null || storage.owner.disposed) {
      throw disposedError(fn, argument);
    }
    const { lost } = storage.owner;
    if (lost) {
      const message = `${fn}: ${argument} must be made again, because what was on the GPU is gone, got ${lost.message}`;
      throw new AttentionError('DEVICE_LOST', message, { cause: lost });
    }
    if (storage.owner !== owner) refuse('INVALID_OPTION', fn, `${argument} must be of this instance`, resident);
    return storage;
  }
}

hideWithoutDispose(Resident);

/**
 * An engine without Symbol.dispose has called the method `[Symbol.dispose]` of a class "undefined": takes it away.
 * @param {{ prototype: object }} type
 */
export function hideWithoutDispose(type) {
  if (!Symbol.dispose) Reflect.deleteProperty(type.prototype, 'undefined');
}

/**
 * A tensor in the memory of an instance, made by `attention.tensor()`. Calls use it in place; as `out` it keeps a
 * result there.
 * @template {TensorData} [T=TensorData]
 */
export class Tensor extends Resident {
  #view;
  #reader;

  /**
   * @hidden
   * @param {Storage} storage
   * @param {{ shape: readonly number[], count: number, dtype: Dtype, isFloat16Array: boolean }} of
   * @param {() => T} view a view of the storage as it is now
   * @param {(tensor: Tensor<T>) => any} [reader] what read() does, if not a copy of that view
   */
  constructor(storage, { shape, count, dtype, isFloat16Array }, view, reader) {
    super(storage);
    /** @type {readonly number[]} */
    this.shape = Object.freeze([...shape]);
    /** @type {Dtype} */
    this.dtype = dtype;
    /** How many elements there are. */
    this.count = count;
    /** Whether `data` is a Float16Array; float16 is Uint16Array bits otherwise. */
    this.isFloat16Array = isFloat16Array;
    this.#view = view;
    this.#reader = reader;
  }

  /**
   * The elements: a fresh view at each read. Don't keep it across calls, because a later call may make the memory grow,
   * which empties older views. Writing to it changes the tensor. On webgpu there is no view: `await tensor.read()`.
   * @returns {T}
   * @throws {AttentionError} DISPOSED; UNSUPPORTED on webgpu
   */
  get data() {
    if (this.disposed) {
      throw disposedError('tensor.data', 'the tensor');
    }
    return this.#view();
  }

  /**
   * A copy of the elements, which no later call touches. On webgpu a promise of one.
   * @returns {T}
   * @throws {AttentionError} DISPOSED; DEVICE_LOST on webgpu
   */
  read() {
    if (this.#reader) return this.#reader(this);
    return /** @type {T} */ (this.data.slice());
  }
}

/** A weight matrix laid out for `attention.linear()` once, with its bias; made by `attention.packLinear()`. */
export class PackedLinear extends Resident {
  /**
   * @hidden
   * @param {Storage} storage @param {readonly [number, number]} shape [N, K]: outputs, inputs
   */
  constructor(storage, shape) {
    super(storage);
    /** @type {readonly [number, number]} */
    this.shape = shape;
  }
}
