// The one block that a call works in: copied inputs, outputs and scratch.
import { bytesOf, typeNumber } from './memory.js';

/** @import { Operand, Output } from './check.js' */
/** @import { Float32Result, Result } from './types.js' */
/** @import { Storage } from './tensor.js' */

/** Where a resident stands. @param {Storage} storage @returns {number} */
export const pointerOf = (storage) => /** @type {Storage & { pointer: number }} */ (storage).pointer;

/** @param {Operand} operand a resident one @returns {number} */
export const residentAt = ({ storage, start, dtype }) =>
  pointerOf(/** @type {Storage} */ (storage)) + start * bytesOf(dtype);

/** @param {number} bytes */
const align = (bytes) => Math.ceil(bytes / 16) * 16;

/** The elements of plain data that belong to the call. @param {Operand} operand @returns {any} */
export function partOf({ data, start, count }) {
  const all = /** @type {any} */ (data);
  return start === 0 && count === all.length ? all : all.subarray(start, start + count);
}

/**
 * One call's working block. Places are reserved first, by the name of the struct's pointer that shall hold them; then
 * one allocation serves them all, and nothing of it stays.
 */
export class Frame {
  #fn;
  #memory;
  #module;
  /** @type {Record<string, number>} */
  #fields;
  // Not 0, so that a place is never a null pointer, not even before the block has its address.
  #size = 16;
  /** @type {string[]} */
  #placed = [];
  /** @type {{ offset: number, data: any, bytes: number, from: number }[]} */
  #copies = [];
  /** @type {{ from: number, isResident: boolean, type: number, offset: number, count: number }[]} */
  #conversions = [];
  /** @type {{ name: string, out: Output, offset: number } | null} a result in a narrower type than the kernel writes */
  #narrowing = null;
  #block = 0;

  /**
   * @param {import('./wasm-backend.js').WasmBackend} backend
   * @param {string} fn @param {Record<string, number>} fields the struct; pointers that are not wanted hold 0
   */
  constructor(backend, fn, fields) {
    this.#fn = fn;
    this.#memory = backend.memory;
    this.#module = backend.module;
    this.#fields = fields;
  }

  /** @param {number} bytes @returns {number} */
  #reserve(bytes) {
    const offset = this.#size;
    this.#size = align(offset + bytes);
    return offset;
  }

  /** Room for `bytes`, at the pointer `name`. @param {string} name @param {number} bytes */
  place(name, bytes) {
    this.#fields[name] = this.#reserve(bytes);
    this.#placed.push(name);
  }

  /** Takes note to copy `data` to the place at `offset`. @param {number} offset @param {ArrayBufferView & {length: number}} data */
  #fill(offset, data) {
    this.#copies.push({ offset, data, bytes: data.byteLength, from: this.#memory.addressOf(data) });
  }

  /** Data to be copied in, at the pointer `name`, if there are any. @param {string} name @param {Int32Array | Float32Array | Uint8Array | null | undefined} data */
  input(name, data) {
    if (!data) return;
    this.place(name, data.byteLength);
    this.#fill(this.#fields[name], data);
  }

  /** An operand in its own type: a resident one where it stands, any other copied in. @param {string} name @param {Operand} operand */
  operand(name, operand) {
    if (operand.storage) this.#fields[name] = residentAt(operand);
    else this.input(name, partOf(operand));
  }

  /** An operand as float32, if there is one; or several, one after the other. @param {string} name @param {Operand | Operand[] | null | undefined} given */
  float32(name, given) {
    if (!given) return;
    const operands = [given].flat();
    const [{ dtype }] = operands;
    if (operands.length === 1 && dtype === 'float32') return this.operand(name, operands[0]);
    this.place(name, operands.reduce((sum, { count }) => sum + count, 0) * 4);
    let offset = this.#fields[name];
    for (const operand of operands) {
      this.#widen(operand, offset);
      offset += operand.count * 4;
    }
  }

  /** @param {Operand} operand @param {number} offset where it goes as float32 */
  #widen(operand, offset) {
    const { storage, dtype, count } = operand;
    if (!storage && dtype === 'float32') return this.#fill(offset, partOf(operand));
    const from = storage ? residentAt(operand) : this.#reserve(count * 2);
    if (!storage) this.#fill(from, partOf(operand));
    this.#conversions.push({ from, isResident: storage !== null, type: typeNumber(dtype), offset, count });
  }

  /** Where a result in its own type goes, at the pointer `name`. @param {string} name @param {Output} out */
  output(name, out) {
    if (out.storage) this.#fields[name] = pointerOf(out.storage);
    else this.place(name, out.count * bytesOf(out.dtype));
  }

  /** The same for kernels that write float32 only: a narrower type is converted to afterwards. @param {string} name @param {Output} out */
  float32Output(name, out) {
    if (out.dtype === 'float32') {
      this.output(name, out);
      return;
    }
    this.place(name, out.count * 4);
    const offset = out.storage ? 0 : this.#reserve(out.count * bytesOf(out.dtype));
    this.#narrowing = { name, out, offset };
  }

  /**
   * Allocates, runs and frees. `results` reads what was asked for while the block is still there.
   * @template R
   * @param {number} count of what there is to compute; 0: nothing
   * @param {(struct: number) => void} run @param {() => R} results
   * @param {(struct: number) => number} [scratch] tells the bytes of working memory that the call needs
   * @returns {R}
   */
  run(count, run, results, scratch) {
    const memory = this.#memory;
    // Working memory depends on sizes and options, and on which pointers are null, but not on where they point.
    if (count && scratch) this.place('scratch', scratch(memory.fill(this.#fields)));
    this.#block = memory.allocate(this.#fn, this.#size);
    try {
      this.#fillBlock();
      const struct = memory.fill(this.#fields);
      if (count) run(struct);
      this.#narrow();
      return results();
    } finally {
      memory.release(this.#block);
    }
  }

  /** Sets the pointers into the block, and brings the inputs there. */
  #fillBlock() {
    const memory = this.#memory;
    const block = this.#block;
    for (const name of this.#placed) this.#fields[name] += block;
    for (const { offset, data, bytes, from } of this.#copies) memory.copyIn(block + offset, data, bytes, from);
    for (const { from, isResident, type, offset, count } of this.#conversions) {
      this.#module._convert(isResident ? from : block + from, type, block + offset, 0, count);
    }
  }

  #narrow() {
    if (!this.#narrowing) return;
    const { name, out, offset } = this.#narrowing;
    const to = out.storage ? pointerOf(out.storage) : this.#block + offset;
    this.#module._convert(this.#fields[name], 0, to, typeNumber(out.dtype), out.count);
  }

  /** The result at `name`: the tensor that was to take it, or a copy. @param {string} name @param {Output} out @returns {Result} */
  result(name, out) {
    if (out.tensor) return out.tensor;
    const { dtype, count, shape, isFloat16Array } = out;
    const pointer = this.#narrowing ? this.#block + this.#narrowing.offset : this.#fields[name];
    return { data: this.#memory.copyOut(this.#fn, pointer, dtype, count, isFloat16Array), shape: shape.slice(), dtype };
  }

  /** A copy of float32 values at `name`. @param {string} name @param {{ shape: readonly number[], count: number }} of @returns {Float32Result} */
  floats(name, { shape, count }) {
    const data = /** @type {Float32Array} */ (this.#memory.copyOut(this.#fn, this.#fields[name], 'float32', count));
    return { data, shape: shape.slice(), dtype: 'float32' };
  }
}
