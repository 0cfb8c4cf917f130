// The memory of one wasm module: heap views, allocation, copies in and out.
import { AttentionError } from './errors.js';
import { kStructBytes } from './structs.js';

/** @import { CacheDtype, Dtype, TensorData } from './types.js' */

// Emscripten stays a page short of 4 GiB, so that the end of memory is not address 0.
export const kMostBytes = 2 ** 32 - 2 ** 16;
const kTypes = { float32: 0, float16: 1, bfloat16: 2, int8: 3, q8_0: 4, q4_0: 5 };

/** @param {Dtype | CacheDtype} dtype the number of a type in attention.h */
export const typeNumber = (dtype) => kTypes[dtype];

/** @param {Dtype} dtype */
export const bytesOf = (dtype) => (dtype === 'float32' ? 4 : 2);

/** Whole-heap views. @typedef {{ buffer: ArrayBufferLike, u8: Uint8Array, u16: Uint16Array, i32: Int32Array, f32: Float32Array }} Heap */

export class Memory {
  #module;

  /** @param {import('./wasm.js').WasmModule} module */
  constructor(module) {
    this.#module = module;
    /** As it is since the last allocation, which may make a new one: never keep this across one. @type {Heap} */
    this.heap = makeHeap(module.wasmMemory.buffer);
    /** Where the struct of the running call stands; calls are synchronous, so one place is enough. */
    this.struct = this.allocate('load', kStructBytes);
  }

  /** Fills the struct of the running call. @param {Record<string, number>} fields see structs.js @returns {number} where it is */
  fill(fields) {
    const { i32 } = this.heap;
    let word = this.struct >>> 2;
    for (const name in fields) i32[word++] = fields[name]; // a fifth of the time that a list of values takes
    return this.struct;
  }

  /** Bytes that are allocated, and bytes that the module has taken from the engine (these only ever grow). */
  get usage() {
    return { allocated: this.#module._usedBytes(), total: this.#module.wasmMemory.buffer.byteLength };
  }

  /**
   * Bytes at a 16-byte aligned address.
   * @param {string} fn @param {number} bytes
   * @returns {number}
   */
  allocate(fn, bytes) {
    const pointer = bytes > kMostBytes ? 0 : this.#module._allocate(bytes);
    if (pointer === 0) throw outOfMemory(fn, bytes);
    const { buffer } = this.#module.wasmMemory; // asked for here alone, because that takes its time
    if (buffer !== this.heap.buffer) this.heap = makeHeap(buffer);
    return pointer;
  }

  /** @param {number} pointer */
  release(pointer) {
    this.#module._release(pointer);
  }

  /**
   * A view of elements at an address.
   * @param {number} pointer @param {Dtype} dtype @param {number} count @param {boolean} [asFloat16Array]
   * @returns {TensorData}
   */
  view(pointer, dtype, count, asFloat16Array = false) {
    const { buffer } = this.heap;
    if (dtype === 'float32') return new Float32Array(buffer, pointer, count);
    if (asFloat16Array) return new /** @type {any} */ (globalThis).Float16Array(buffer, pointer, count);
    return new Uint16Array(buffer, pointer, count);
  }

  /**
   * Copies `data` to an address. `from` is where `data` stood if it is a view of this very memory, which an
   * allocation in between may have detached; else −1.
   * @param {number} pointer @param {ArrayBufferView & { length: number }} data @param {number} bytes @param {number} from
   */
  copyIn(pointer, data, bytes, from) {
    const heap = this.heap;
    if (from >= 0) heap.u8.copyWithin(pointer, from, from + bytes);
    else if (data instanceof Float32Array) heap.f32.set(data, pointer >>> 2);
    else if (data instanceof Int32Array) heap.i32.set(data, pointer >>> 2);
    else if (data instanceof Uint16Array) heap.u16.set(data, pointer >>> 1);
    else heap.u8.set(new Uint8Array(data.buffer, data.byteOffset, bytes), pointer);
  }

  /** Where a view of this memory stands, or −1 for data elsewhere. @param {ArrayBufferView} data */
  addressOf(data) {
    return data.buffer === this.heap.buffer ? data.byteOffset : -1;
  }

  /**
   * A copy of elements, outside of this memory.
   * @param {string} fn @param {number} pointer @param {Dtype} dtype @param {number} count @param {boolean} [asFloat16Array]
   * @returns {TensorData}
   */
  copyOut(fn, pointer, dtype, count, asFloat16Array = false) {
    try {
      if (dtype === 'float32') return this.heap.f32.slice(pointer >>> 2, (pointer >>> 2) + count);
      if (!asFloat16Array) return this.heap.u16.slice(pointer >>> 1, (pointer >>> 1) + count);
      return /** @type {any} */ (this.view(pointer, dtype, count, true)).slice();
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause;
      throw outOfMemory(fn, count * bytesOf(dtype), cause);
    }
  }
}

/** @param {string} fn @param {number} bytes @param {unknown} [cause] */
export function outOfMemory(fn, bytes, cause) {
  return new AttentionError('OUT_OF_MEMORY', `${fn}: memory must be had for the call, got no room for ${bytes} bytes`, {
    cause,
  });
}

/** @param {ArrayBufferLike} buffer @returns {Heap} */
function makeHeap(buffer) {
  return {
    buffer,
    u8: new Uint8Array(buffer),
    u16: new Uint16Array(buffer),
    i32: new Int32Array(buffer),
    f32: new Float32Array(buffer),
  };
}
