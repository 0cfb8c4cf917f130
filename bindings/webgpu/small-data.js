// The small data of a call, parameters of shaders and lists among them: all in one buffer, written at once.
import { kUsage } from './pool.js';

/** @import { Gpu } from './gpu.js' */
/** @import { Layout } from './layout.js' */
/** @import { Placed, Recording } from './recording.js' */

const kBytes = 2 ** 16;
/** Larger data has a buffer and a write of its own: a second copy would cost more than they do. */
const kMostBytes = 2 ** 12;
/** What offsets of bindings must be multiples of, on any device. */
export const kAlignment = 256;
const kKind = kUsage.uniform | kUsage.storage | kUsage.copySource | kUsage.copyTarget;

/** Filled by one call after the other, each until it is submitted; the queue takes a copy. */
const bytes = new Uint8Array(kBytes);
const view = new DataView(bytes.buffer);

export class SmallData {
  #gpu;
  #recording;
  /** @type {GPUBuffer | null} */
  #buffer = null;
  #used = 0;

  /** @param {Gpu} gpu @param {Recording} recording */
  constructor(gpu, recording) {
    this.#gpu = gpu;
    this.#recording = recording;
  }

  /** @param {number} length */
  static takes(length) {
    return length <= kMostBytes;
  }

  /** @param {ArrayBufferView} data @returns {Placed} */
  place(data) {
    const size = Math.max(16, Math.ceil(data.byteLength / 16) * 16);
    const placed = this.#room(size);
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), placed.offset);
    return placed;
  }

  /** @param {Layout} layout @param {Record<string, number>} values @returns {Placed} */
  parameters(layout, values) {
    const placed = this.#room(layout.bytes);
    layout.write(view, placed.offset, values);
    return placed;
  }

  /** @param {number} size @returns {Placed} */
  #room(size) {
    if (!this.#buffer || this.#used + size > kBytes) {
      this.write();
      this.#buffer = this.#nextBuffer();
      this.#used = 0;
    }
    const offset = this.#used;
    this.#used = Math.ceil((offset + size) / kAlignment) * kAlignment;
    return { buffer: this.#buffer, offset, size };
  }

  /** One buffer serves all calls; a long one takes further ones. */
  #nextBuffer() {
    if (this.#buffer) return this.#recording.temporary(kBytes, kKind);
    this.#gpu.smallData ??= this.#recording.hold(kBytes, kKind);
    return this.#gpu.smallData;
  }

  /** Sends what has been placed. */
  write() {
    if (this.#buffer) this.#gpu.device.queue.writeBuffer(this.#buffer, 0, bytes, 0, Math.min(this.#used, kBytes));
  }

  /** After an error of the device: the buffer that was made for all calls may be one that there was no room for. */
  fail() {
    const buffer = this.#gpu.smallData;
    if (!buffer || this.#gpu.isProven(buffer)) return;
    this.#gpu.release(buffer);
    this.#gpu.smallData = null;
  }
}
