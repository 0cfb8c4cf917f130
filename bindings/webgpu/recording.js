// One call: the dispatches and copies that it records, the buffers that it needs meanwhile, and the results that are
// read back when the device is done. What is recorded is submitted at once, so calls run in the order they were made.
import { AttentionError } from '../errors.js';
import { kUsage } from './pool.js';
import { SmallData } from './small-data.js';

/** @import { Gpu } from './gpu.js' */
/** @import { Layout } from './layout.js' */

/**
 * A part of a buffer as a shader sees it.
 * @typedef {{ buffer: GPUBuffer, offset?: number, size?: number, isWritten?: boolean }} Binding
 */

/** Data in a part of a buffer that begins where a binding may. @typedef {{ buffer: GPUBuffer, offset: number, size: number }} Placed */

/**
 * @typedef {object} Dispatch
 * @property {string} name of the shader, with what its text depends on
 * @property {() => string} code
 * @property {Record<string, number>} [constants]
 * @property {Layout} layout
 * @property {Record<string, number>} values
 * @property {(Binding | null)[]} bindings from number 1 on; null for what the shader doesn't declare
 * @property {number} groups
 */

export class Recording {
  #gpu;
  #encoder;
  /** @type {GPUComputePassEncoder | null} */
  #pass = null;
  /** To be let go of after the call. @type {GPUBuffer[]} */
  #temporary = [];
  /** Taken in this call, for as long as it is. @type {GPUBuffer[]} */
  #taken = [];
  #smallData;
  /** @type {{ buffer: GPUBuffer, bytes: number, take: (copy: ArrayBuffer) => void }[]} */
  #reads = [];
  /** The function that messages name. */
  fn = 'webgpu';

  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.#gpu = gpu;
    this.#smallData = new SmallData(gpu, this);
    for (const filter of kFilters) gpu.device.pushErrorScope(filter);
    this.#encoder = gpu.device.createCommandEncoder();
  }

  /** A buffer for longer than the call. @param {number} bytes @param {number} [usage] */
  hold(bytes, usage) {
    const buffer = this.#gpu.buffer(this.fn, bytes, usage);
    this.#taken.push(buffer);
    return buffer;
  }

  /** A buffer for the time of the call, with anything in it. @param {number} bytes @param {number} [usage] */
  temporary(bytes, usage) {
    const buffer = this.#gpu.temporary(this.fn, bytes, usage);
    this.#taken.push(buffer);
    this.#temporary.push(buffer);
    return buffer;
  }

  /** Takes a buffer that nobody needs after the call. @param {GPUBuffer} buffer */
  release(buffer) {
    this.#temporary.push(buffer);
  }

  /** Data for the time of the call. @param {ArrayBufferView & { length: number }} data @returns {Placed} */
  upload(data) {
    if (SmallData.takes(data.byteLength)) return this.#smallData.place(data);
    const buffer = this.temporary(data.byteLength);
    this.write(buffer, data);
    return { buffer, offset: 0, size: buffer.size };
  }

  /** Zeros in a whole buffer. @param {GPUBuffer} buffer */
  clear(buffer) {
    this.#endPass();
    this.#encoder.clearBuffer(buffer);
  }

  /** @param {GPUBuffer} buffer @param {ArrayBufferView} data */
  write(buffer, data) {
    const { queue } = this.#gpu.device;
    const whole = data.byteLength & ~3; // what the queue takes is a multiple of four bytes
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    if (whole > 0) queue.writeBuffer(buffer, 0, bytes, 0, whole);
    if (whole === data.byteLength) return;
    const rest = new Uint8Array(4);
    rest.set(bytes.subarray(whole));
    queue.writeBuffer(buffer, whole, rest);
  }

  /** @param {Dispatch} dispatch */
  dispatch({ name, code, constants = {}, layout, values, bindings, groups }) {
    if (groups === 0) return;
    const { device } = this.#gpu;
    const pipeline = this.#gpu.pipeline(name, code, constants);
    const parameters = this.#smallData.parameters(layout, values);
    const apart = this.#withoutAliases(bindings);
    /** @type {GPUBindGroupEntry[]} */
    const entries = [];
    [parameters, ...apart].forEach((part, binding) => {
      if (!part) return;
      const { buffer, offset = 0, size = buffer.size - offset } = /** @type {Binding} */ (part);
      entries.push({ binding, resource: { buffer, offset, size } });
    });
    this.#pass ??= this.#encoder.beginComputePass();
    this.#pass.setPipeline(pipeline);
    this.#pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
    const x = Math.min(groups, this.#gpu.limits.maxComputeWorkgroupsPerDimension);
    this.#pass.dispatchWorkgroups(x, Math.ceil(groups / x));
  }

  /** A shader may not read a buffer that it writes: reads a copy instead. @param {(Binding | null)[]} bindings */
  #withoutAliases(bindings) {
    const written = bindings.flatMap((binding) => (binding?.isWritten ? [binding.buffer] : []));
    /** @type {Map<Binding, Binding>} */
    const copies = new Map();
    return bindings.map((binding) => {
      if (!binding || binding.isWritten || !written.includes(binding.buffer)) return binding;
      const known = copies.get(binding);
      if (known) return known;
      const { buffer, offset = 0, size = buffer.size - offset } = binding;
      /** @type {Binding} */
      const copy = { buffer: this.temporary(size) };
      this.copy(buffer, offset, copy.buffer, 0, size);
      copies.set(binding, copy);
      return copy;
    });
  }

  /** Bytes from one buffer to another; all numbers are multiples of four. @param {GPUBuffer} from @param {number} fromOffset @param {GPUBuffer} to @param {number} toOffset @param {number} bytes */
  copy(from, fromOffset, to, toOffset, bytes) {
    this.#endPass();
    if (bytes > 0) this.#encoder.copyBufferToBuffer(from, fromOffset, to, toOffset, bytes);
  }

  #endPass() {
    this.#pass?.end();
    this.#pass = null;
  }

  /**
   * Reads bytes back after the call.
   * @param {GPUBuffer} buffer @param {number} offset a multiple of four @param {number} bytes
   * @param {(copy: ArrayBuffer) => void} take
   */
  read(buffer, offset, bytes, take) {
    if (bytes === 0) {
      take(new ArrayBuffer(0));
      return;
    }
    const staging = this.#gpu.temporary(this.fn, bytes, kUsage.mapRead | kUsage.copyTarget);
    this.#taken.push(staging);
    this.copy(buffer, offset, staging, 0, Math.ceil(bytes / 4) * 4);
    this.#reads.push({ buffer: staging, bytes, take });
  }

  /** Submits what was recorded; resolves when the results are there. */
  async finish() {
    const { device } = this.#gpu;
    this.#endPass();
    this.#smallData.write();
    device.queue.submit([this.#encoder.finish()]);
    const scopes = kFilters.map(() => device.popErrorScope());
    const reads = this.#reads.map(({ buffer, bytes }) => this.#gpu.read(buffer, bytes));
    this.#clear((buffer) => this.#gpu.isProven(buffer)); // the next call comes behind this one
    for (const read of reads) read.catch(() => {}); // an error of a scope says more
    try {
      await Promise.race([this.#gpu.loss, this.#check(scopes)]);
      this.#gpu.vouchFor(this.#taken);
      const copies = await Promise.race([this.#gpu.loss, Promise.all(reads)]);
      this.#reads.forEach(({ take }, n) => {
        take(copies[n]);
      });
      for (const { buffer } of this.#reads) this.#gpu.release(buffer);
    } catch (error) {
      this.#smallData.fail();
      for (const { buffer } of this.#reads) this.#gpu.discard(buffer); // it may still be waiting to be mapped
      if (this.#gpu.isClosed) {
        const message = `${this.fn}: the instance must not be disposed of before its calls have ended, got dispose()`;
        throw new AttentionError('DISPOSED', message, { cause: error });
      }
      // A lost device makes its other promises fail in their own ways, some of them before it is said to be lost.
      if (!(error instanceof AttentionError)) await Promise.race([this.#gpu.loss, later()]);
      throw error;
    } finally {
      this.#clear();
    }
  }

  /** @param {Promise<GPUError | null>[]} scopes the innermost first */
  async #check(scopes) {
    const errors = await Promise.all(scopes);
    errors.forEach((error, n) => {
      if (!error) return;
      if (kFilters[kFilters.length - 1 - n] === 'out-of-memory') {
        throw new AttentionError('OUT_OF_MEMORY', `${this.fn}: memory must be had on the GPU, got ${error.message}`);
      }
      throw new AttentionError('UNSUPPORTED', `${this.fn}: the device must run the call, got ${error.message}`);
    });
  }

  /** Ends a call that nothing was submitted of. */
  abandon() {
    this.#endPass();
    for (const _ of kFilters) this.#gpu.device.popErrorScope().catch(() => {});
    for (const { buffer } of this.#reads) this.#gpu.discard(buffer);
    this.#smallData.fail();
    this.#clear();
  }

  /** @param {(buffer: GPUBuffer) => boolean} [isFree] */
  #clear(isFree = () => true) {
    const all = this.#temporary.splice(0);
    for (const buffer of all) {
      if (isFree(buffer)) this.#gpu.release(buffer);
      else this.#temporary.push(buffer);
    }
  }
}

/** @type {GPUErrorFilter[]} */
const kFilters = ['internal', 'validation', 'out-of-memory'];

/** Long enough for an engine to say that a device is lost. */
const later = () => new Promise((done) => setTimeout(done, 100));
