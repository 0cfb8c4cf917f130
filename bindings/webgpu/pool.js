// The buffers of a device: those in use, and those that wait for the next call that needs one of their size. The queue
// runs work in order, so a buffer may be used again as soon as what was to be done with it is submitted.

/** Values of GPUBufferUsage, which is a global in browsers only. */
export const kUsage = { mapRead: 0x1, copySource: 0x4, copyTarget: 0x8, uniform: 0x40, storage: 0x80 };

/** Bytes that may wait: more would be kept from others for no use that is near. */
export const kMostIdle = 2 ** 27;

export class BufferPool {
  #device;
  /** @type {Set<GPUBuffer>} */
  #used = new Set();
  /** Made by calls of which the device has not said yet that all went well: they may be invalid. @type {Set<GPUBuffer>} */
  #unproven = new Set();
  /** Waiting, in the order that they were given back. @type {Set<GPUBuffer>} */
  #idle = new Set();
  /** The same by usage and size. @type {Map<string, GPUBuffer[]>} */
  #byKind = new Map();
  #bytes = { used: 0, idle: 0 };

  /** @param {GPUDevice} device */
  constructor(device) {
    this.#device = device;
  }

  get usage() {
    const { used, idle } = this.#bytes;
    return { bytes: used, idle };
  }

  /** @param {number} size @param {number} usage @returns {GPUBuffer} */
  take(size, usage) {
    const waiting = this.#byKind.get(kindOf(size, usage));
    const known = waiting?.pop();
    if (known) this.#wake(known);
    const buffer = known ?? this.#device.createBuffer({ size, usage });
    if (!known) this.#unproven.add(buffer);
    this.#used.add(buffer);
    this.#bytes.used += size;
    return buffer;
  }

  /** @param {GPUBuffer} buffer */
  #wake(buffer) {
    this.#idle.delete(buffer);
    this.#bytes.idle -= buffer.size;
  }

  /** @param {GPUBuffer} buffer that nothing will be recorded for any more */
  give(buffer) {
    if (!this.#used.delete(buffer)) return;
    this.#bytes.used -= buffer.size;
    if (this.#unproven.delete(buffer) || buffer.size > kMostIdle / 2) {
      buffer.destroy();
      return;
    }
    this.#idle.add(buffer);
    this.#bytes.idle += buffer.size;
    const kind = kindOf(buffer.size, buffer.usage);
    const waiting = this.#byKind.get(kind);
    if (waiting) waiting.push(buffer);
    else this.#byKind.set(kind, [buffer]);
    for (const oldest of this.#idle) {
      if (this.#bytes.idle <= kMostIdle) break;
      this.#drop(oldest);
    }
  }

  /** @param {GPUBuffer} buffer that nobody can use again */
  discard(buffer) {
    this.#unproven.add(buffer);
    this.give(buffer);
  }

  /** @param {GPUBuffer} buffer one that waits */
  #drop(buffer) {
    this.#wake(buffer);
    const kind = kindOf(buffer.size, buffer.usage);
    const left = /** @type {GPUBuffer[]} */ (this.#byKind.get(kind)).filter((other) => other !== buffer);
    if (left.length > 0) this.#byKind.set(kind, left);
    else this.#byKind.delete(kind);
    buffer.destroy();
  }

  /** @param {GPUBuffer} buffer */
  isProven(buffer) {
    return !this.#unproven.has(buffer);
  }

  /** @param {Iterable<GPUBuffer>} buffers that the device has made without an error */
  vouchFor(buffers) {
    for (const buffer of buffers) this.#unproven.delete(buffer);
  }

  /** After a loss: what was there is gone. */
  forget() {
    for (const set of [this.#used, this.#unproven, this.#idle]) set.clear();
    this.#byKind.clear();
    this.#bytes = { used: 0, idle: 0 };
  }

  close() {
    for (const buffer of [...this.#used, ...this.#idle]) buffer.destroy();
    this.forget();
  }
}

/** @param {number} size @param {number} usage */
const kindOf = (size, usage) => `${usage} ${size}`;
