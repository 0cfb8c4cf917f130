// One GPU device: how it is got, what it can do, its buffers and pipelines, and its loss.
import { AttentionError } from '../errors.js';
import { BufferPool, kUsage } from './pool.js';

/** GPUMapMode.READ, a global in browsers only. */
const kMapRead = 0x1;

/** What is asked for: at most this, and never above what the adapter has. */
const kWantedLimits = {
  maxBufferSize: Number.MAX_SAFE_INTEGER,
  maxStorageBufferBindingSize: Number.MAX_SAFE_INTEGER,
  maxComputeWorkgroupStorageSize: 32768,
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupSizeX: 256,
  maxComputeWorkgroupSizeY: 256,
};
const kWantedFeatures = ['shader-f16', 'subgroups', 'timestamp-query'];

/** Why there is no device: a reason for `info.reasons`. */
export class Unavailable extends Error {}

/**
 * A device of the engine's own choice.
 * @param {boolean} acceptsSoftware whether an adapter that computes on the processor will do
 * @returns {Promise<Gpu>}
 * @throws {Unavailable}
 */
export async function openGpu(acceptsSoftware) {
  const gpu = globalThis.navigator?.gpu;
  if (!gpu) throw new Unavailable('this engine has no WebGPU (navigator.gpu is missing)');
  const adapter = await answer('requestAdapter', gpu.requestAdapter());
  if (!adapter) throw new Unavailable('no adapter answered');
  if (isSoftware(adapter) && !acceptsSoftware) {
    throw new Unavailable(`the only adapter computes on the processor (${nameOf(adapter.info)})`);
  }
  const device = await answer(
    'requestDevice',
    adapter.requestDevice({
      requiredFeatures: /** @type {any} */ (kWantedFeatures.filter((name) => adapter.features.has(name))),
      requiredLimits: limitsFor(adapter.limits),
    }),
  );
  return new Gpu(device, adapter.info, true);
}

/** @param {any} adapter */
const isSoftware = ({ info, isFallbackAdapter }) => info?.isFallbackAdapter ?? isFallbackAdapter ?? false;

/** @template T @param {string} name @param {Promise<T>} promise @returns {Promise<T>} */
async function answer(name, promise) {
  try {
    return await promise;
  } catch (error) {
    throw new Unavailable(`${name} was refused (${/** @type {Error} */ (error).message})`);
  }
}

/** @param {any} limits those of an adapter @returns {Record<string, number>} */
export function limitsFor(limits) {
  /** @type {Record<string, number>} */
  const wanted = {};
  for (const [name, most] of Object.entries(kWantedLimits)) {
    if (typeof limits[name] === 'number') wanted[name] = Math.min(most, limits[name]);
  }
  return wanted;
}

/** @param {any} info of an adapter */
const nameOf = (info) =>
  [info?.vendor, info?.architecture, info?.description].filter(Boolean).join(' ') || 'without a name';

/** @typedef {{ code: string, constants: Record<string, number> }} Program */

export class Gpu {
  /** @type {Map<string, GPUComputePipeline>} */
  #pipelines = new Map();
  /** After dispose() of the instance. */
  isClosed = false;
  #pool;

  /** @param {GPUDevice} device @param {unknown} info of its adapter @param {boolean} isOwn not the caller's */
  constructor(device, info, isOwn) {
    this.device = device;
    this.isOwn = isOwn;
    this.adapter = nameOf(info);
    this.limits = device.limits;
    this.#pool = new BufferPool(device);
    const language = globalThis.navigator?.gpu?.wgslLanguageFeatures;
    this.features = {
      f16: device.features.has('shader-f16'),
      // The number of a subgroup is a feature of the language, not of the device.
      subgroups: device.features.has(/** @type {any} */ ('subgroups')) && Boolean(language?.has('subgroup_id')),
      timestamps: device.features.has('timestamp-query'),
    };
    /** Small data of calls: one buffer for all of them, because the queue keeps the order of writes and work. @type {GPUBuffer | null} */
    this.smallData = null;
    /** Why the device went away, once it has. @type {AttentionError | null} */
    this.lost = null;
    /** Never resolves; rejects when the device goes away. @type {Promise<never>} */
    this.loss = new Promise((_, reject) => {
      device.lost.then((reason) => {
        if (this.isClosed) return;
        const why = reason?.message || reason?.reason || 'unknown';
        this.lost = new AttentionError('DEVICE_LOST', `webgpu: the device must stay, got lost (${why})`);
        this.#pool.forget();
        this.#pipelines.clear();
        reject(this.lost);
      });
    });
    this.loss.catch(() => {}); // whoever waits for it is told; nobody else needs to be
  }

  /** Bytes of the buffers in use, and of those that wait in the pool. */
  get usage() {
    return this.#pool.usage;
  }

  /**
   * A buffer of at least `bytes`, a multiple of 16. What is in it is left over from another use, unless it is new.
   * @param {string} fn @param {number} bytes @param {number} [usage]
   * @returns {GPUBuffer}
   */
  buffer(fn, bytes, usage = kUsage.storage | kUsage.copySource | kUsage.copyTarget) {
    const size = Math.max(16, Math.ceil(bytes / 16) * 16);
    if (size > this.limits.maxBufferSize) throw this.outOfMemory(fn, size);
    return this.#pool.take(size, usage);
  }

  /** The same in one of few sizes, so that calls of about the same size share it. @param {string} fn @param {number} bytes @param {number} [usage] */
  temporary(fn, bytes, usage) {
    const most = Math.min(this.limits.maxBufferSize, this.limits.maxStorageBufferBindingSize);
    const size = sizeClass(bytes);
    return this.buffer(fn, size <= most ? size : bytes, usage);
  }

  /** @param {GPUBuffer} buffer */
  release(buffer) {
    this.#pool.give(buffer);
  }

  /** A buffer that can't be used again. @param {GPUBuffer} buffer */
  discard(buffer) {
    this.#pool.discard(buffer);
  }

  /** Whether the device has said that it could make the buffer. @param {GPUBuffer} buffer */
  isProven(buffer) {
    return this.#pool.isProven(buffer);
  }

  /** Buffers that the device has made without an error. @param {readonly GPUBuffer[]} buffers */
  vouchFor(buffers) {
    this.#pool.vouchFor(buffers);
  }

  /** @param {string} fn @param {number} bytes @param {unknown} [cause] */
  outOfMemory(fn, bytes, cause) {
    const most = this.limits.maxBufferSize;
    const message = `${fn}: memory must be had on the GPU, got no room for ${bytes} bytes (a buffer holds at most ${most})`;
    return new AttentionError('OUT_OF_MEMORY', message, { cause });
  }

  /**
   * The pipeline of a shader, made at its first use.
   * @param {string} name tells the shader and what its text depends on @param {() => string} code
   * @param {Record<string, number>} constants override constants
   */
  pipeline(name, code, constants) {
    const key = `${name} ${Object.values(constants).join(' ')}`;
    let pipeline = this.#pipelines.get(key);
    if (!pipeline) {
      const module = this.device.createShaderModule({ label: name, code: code() });
      pipeline = this.device.createComputePipeline({
        label: key,
        layout: 'auto',
        compute: { module, entryPoint: 'main', constants },
      });
      this.#pipelines.set(key, pipeline);
    }
    return pipeline;
  }

  /** @param {GPUBuffer} buffer @param {number} bytes @returns {Promise<ArrayBuffer>} a copy */
  async read(buffer, bytes) {
    const size = Math.ceil(bytes / 4) * 4;
    await buffer.mapAsync(kMapRead, 0, size);
    const copy = buffer.getMappedRange(0, size).slice(0, bytes);
    buffer.unmap();
    return copy;
  }

  /** Lets go of all buffers, and of the device unless it is the caller's. */
  close() {
    this.isClosed = true;
    this.#pool.close();
    this.#pipelines.clear();
    if (this.isOwn) this.device.destroy();
  }
}

/** Four sizes to each power of two: at most a quarter more than is needed. @param {number} bytes */
export function sizeClass(bytes) {
  const step = Math.max(64, 2 ** (Math.floor(Math.log2(Math.max(1, bytes - 1))) - 2));
  return Math.ceil(bytes / step) * step;
}
