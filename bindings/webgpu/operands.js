// Operands of a call as buffers: uploaded, converted, and cut to what a device can bind.
import { AttentionError } from '../errors.js';
import { partOf } from '../frame.js';
import { fromHalf } from '../half.js';
import { bytesOf, typeNumber } from '../memory.js';
import { convert, convertLayout, kThreads } from './elementwise.wgsl.js';
import { kAlignment } from './small-data.js';

/** @import { Operand, Output } from '../check.js' */
/** @import { Dtype } from '../types.js' */
/** @import { Storage } from '../tensor.js' */
/** @import { Gpu } from './gpu.js' */
/** @import { Binding, Placed, Recording } from './recording.js' */

/** @typedef {Storage & { buffer: GPUBuffer }} GpuStorage */

/** Elements of a type in a buffer, from number `first` on. @typedef {{ buffer: GPUBuffer, first: number, dtype: Dtype }} Part */

/** @param {Storage} storage */
export const bufferOf = (storage) => /** @type {GpuStorage} */ (storage).buffer;

/** @param {Placed} placed @param {Dtype} [dtype] @returns {Part} */
export const placedPart = ({ buffer, offset }, dtype = 'float32') => ({
  ...{ buffer, dtype },
  first: offset / bytesOf(dtype),
});

export class Operands {
  #gpu;
  #recording;
  /** @type {Placed | null} */
  #unused = null;

  /** @param {Gpu} gpu @param {Recording} recording */
  constructor(gpu, recording) {
    this.#gpu = gpu;
    this.#recording = recording;
  }

  /** The operand in its own type. @param {Operand} operand @returns {Part} */
  part(operand) {
    const { storage, dtype, start } = operand;
    if (storage) return { buffer: bufferOf(storage), first: start, dtype };
    return placedPart(this.#recording.upload(partOf(operand)), dtype);
  }

  /** The operand as float32. @param {Operand} operand @returns {Part} */
  float32(operand) {
    const part = this.part(operand);
    if (part.dtype === 'float32') return part;
    const buffer = this.#recording.temporary(operand.count * 4);
    this.convert(part, { buffer, first: 0, dtype: 'float32' }, operand.count);
    return { buffer, first: 0, dtype: 'float32' };
  }

  /** Values in JavaScript, or null where they are on the GPU only. @param {Operand} operand @returns {Float32Array | null} */
  values(operand) {
    if (operand.storage) return null;
    const data = partOf(operand);
    if (operand.dtype === 'float32') return data;
    if (operand.isFloat16Array) return Float32Array.from(data);
    return Float32Array.from(data, (bits) => fromHalf(bits, operand.dtype));
  }

  /** count elements to another type; `to.first` is even in narrow types. @param {Part} from @param {Part} to @param {number} count */
  convert(from, to, count) {
    const perWord = to.dtype === 'float32' ? 1 : 2;
    const most = Math.floor(this.#gpu.limits.maxStorageBufferBindingSize / 8 / kAlignment) * kAlignment;
    for (let done = 0; done < count; done += most) {
      const values = Math.min(most, count - done);
      const words = Math.ceil(values / perWord);
      const source = this.window(from, done, done + values);
      const target = this.window(to, done, done + words * perWord);
      this.#recording.dispatch({
        name: 'convert',
        code: convert,
        constants: { kFromType: typeNumber(from.dtype), kToType: typeNumber(to.dtype) },
        layout: convertLayout,
        values: {
          count: words,
          values,
          from_first: source.first + done,
          to_first: (target.first + done) / perWord,
        },
        bindings: [source.binding, { ...target.binding, isWritten: true }],
        groups: Math.ceil(words / kThreads),
      });
    }
  }

  /**
   * A part as a binding. Where the buffer is larger than a device binds, that is what holds elements low … high − 1,
   * counted from the part's first; `first` is then the place of element 0, which may lie before the binding.
   * @param {Part} part @param {number} low @param {number} high
   * @returns {{ binding: Binding, first: number }}
   */
  window({ buffer, first, dtype }, low, high) {
    const most = this.#gpu.limits.maxStorageBufferBindingSize;
    if (buffer.size <= most) return { binding: { buffer }, first };
    const bytes = bytesOf(dtype);
    const offset = Math.floor(((first + low) * bytes) / kAlignment) * kAlignment;
    const end = Math.min(buffer.size, Math.ceil(((first + high) * bytes) / 16) * 16);
    if (end - offset > most) throw this.tooLarge(end - offset);
    return { binding: { buffer, offset, size: Math.max(16, end - offset) }, first: first - offset / bytes };
  }

  /** Whether window() can bind elements low … high − 1. @param {Part} part @param {number} low @param {number} high */
  fits({ buffer, dtype }, low, high) {
    const most = this.#gpu.limits.maxStorageBufferBindingSize;
    return buffer.size <= most || (high - low) * bytesOf(dtype) + 2 * kAlignment <= most;
  }

  /** A buffer that is not cut into parts. @param {GPUBuffer} buffer @returns {Binding} */
  whole(buffer) {
    if (buffer.size > this.#gpu.limits.maxStorageBufferBindingSize) throw this.tooLarge(buffer.size);
    return { buffer };
  }

  /** For a binding that a shader declares and won't read in this call. */
  get unused() {
    this.#unused ??= this.#recording.upload(new Float32Array(4));
    return this.#unused;
  }

  /** float32 elements that a binding holds, wherever they begin. */
  get mostFloats() {
    return this.#gpu.limits.maxStorageBufferBindingSize / 4 - kAlignment;
  }

  /** Ranges of elements that a device can bind in float32, each a multiple of `unit` long. @param {number} count @param {number} unit */
  *chunks(count, unit) {
    const most = this.mostFloats;
    const step = count <= most ? count : Math.floor(most / unit) * unit;
    if (step <= 0 && count > 0) throw this.tooLarge(unit * 4);
    for (let start = 0; start < count; start += step) yield { start, end: Math.min(count, start + step) };
  }

  /** @param {number} bytes */
  tooLarge(bytes) {
    const most = this.#gpu.limits.maxStorageBufferBindingSize;
    const rule = `a part of a tensor that is used at once must have at most ${most} bytes on this device`;
    return new AttentionError('OUT_OF_MEMORY', `${this.#recording.fn}: ${rule}, got ${bytes}`);
  }

  /**
   * Where a kernel that writes float32 writes to: the output itself, or a place to be narrowed by result().
   * @param {Output} out
   * @returns {Part}
   */
  target(out) {
    if (out.storage && out.dtype === 'float32') {
      return { buffer: bufferOf(out.storage), first: out.start ?? 0, dtype: 'float32' };
    }
    return { buffer: this.#recording.temporary(out.count * 4), first: 0, dtype: 'float32' };
  }

  /**
   * The result that is in `part`, in the type of the output: the tensor that was to take it, or an object whose data
   * is there when the call has ended.
   * @param {Output} out @param {Part} part what target() gave
   * @returns {any}
   */
  result(out, part) {
    const { dtype, count, shape, isFloat16Array, storage, tensor } = out;
    let { buffer } = part;
    if (dtype !== 'float32') {
      buffer = storage ? bufferOf(storage) : this.#recording.temporary(count * 2);
      this.convert(part, { buffer, first: 0, dtype }, count);
    }
    if (storage) return tensor;
    return this.fresh({ buffer, first: 0, dtype }, { shape, count, isFloat16Array });
  }

  /**
   * A result whose data is read back.
   * @param {Part} part at an even place @param {{ shape: readonly number[], count: number, isFloat16Array?: boolean }} of
   */
  fresh({ buffer, first, dtype }, { shape, count, isFloat16Array = false }) {
    /** @type {{ data: any, shape: number[], dtype: Dtype }} */
    const result = { data: null, shape: [...shape], dtype };
    const bytes = bytesOf(dtype);
    this.#recording.read(buffer, first * bytes, count * bytes, (copy) => {
      result.data = typedArray(copy, dtype, isFloat16Array);
    });
    return result;
  }
}

/** @param {ArrayBuffer} copy @param {Dtype} dtype @param {boolean} isFloat16Array */
export function typedArray(copy, dtype, isFloat16Array) {
  if (dtype === 'float32') return new Float32Array(copy);
  return isFloat16Array ? new /** @type {any} */ (globalThis).Float16Array(copy) : new Uint16Array(copy);
}
