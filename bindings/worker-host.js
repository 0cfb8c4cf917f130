// The worker's side of attention-wasm/worker: an instance, the objects made of it, and calls by message.

import { isNode, nodeModule } from './engine.js';
import { AttentionError } from './errors.js';
import { load } from './index.js';
import { contextOf } from './instances.js';
import { CacheSnapshot, KeyValueCache } from './key-value-cache.js';
import { MultiHeadAttention } from './multi-head-attention.js';
import { Resident } from './tensor.js';
import { isHandle, mapParts, pack } from './worker-messages.js';
import { watch } from './worker-slices.js';

/** @import { Attention } from './index.js' */
/** @import { Info, MemoryUsage } from './types.js' */
/** @import { WasmBackend } from './wasm-backend.js' */

/**
 * @typedef {object} Request
 * @property {number} id
 * @property {'load' | 'call' | 'dispose' | 'stop'} kind
 * @property {number} target handle of the object; 0: the instance
 * @property {string} method
 * @property {any[]} args
 * @property {boolean} reports whether progress is wanted
 * @property {Int32Array} [stop] shared: the number of the call that shall stop; comes with 'load'
 */

/** @typedef {{ post: (message: unknown, transfer: ArrayBuffer[]) => void, listen: (receive: (message: any) => void) => void }} Port */

/** Makes the module or worker thread it runs in answer a page's load(). */
export async function serveWorker() {
  const port = await portOf();
  const host = new Host(port);
  port.listen((message) => host.receive(message));
  port.post({ ready: true }, []);
}

/** @returns {Promise<Port>} */
async function portOf() {
  if (isNode()) {
    const { parentPort } = /** @type {typeof import('node:worker_threads')} */ (await nodeModule('worker_threads'));
    const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);
    return {
      post: (message, transfer) => port.postMessage(message, /** @type {any} */ (transfer)),
      listen: (receive) => void port.on('message', receive),
    };
  }
  const scope = /** @type {any} */ (globalThis);
  return {
    post: (message, transfer) => scope.postMessage(message, transfer),
    listen: (receive) => scope.addEventListener('message', (/** @type {MessageEvent} */ { data }) => receive(data)),
  };
}

/** What stays here, and what the page shows of it. @typedef {[new (...args: any) => any, (object: any) => object | null]} Kind */

/** @type {readonly Kind[]} */
const kKinds = [
  [
    KeyValueCache,
    (cache) => {
      if (cache.disposed) return null;
      const { lengths, positions, bytes, capacity, dtype } = cache;
      return { lengths, positions, bytes, capacity, dtype };
    },
  ],
  [Resident, ({ disposed, shape, dtype, count }) => (disposed ? null : { shape, dtype, count })],
  [MultiHeadAttention, () => null],
  [CacheSnapshot, () => null],
];

class Host {
  #port;
  #kinds = [...kKinds];
  /** @type {Attention | null} */
  #attention = null;
  /** @type {Map<number, any>} */
  #objects = new Map();
  #last = 0;
  /** What came up last. @type {Info | null} */
  #info = null;
  /** @type {Int32Array | null} */
  #stop = null;
  /** The call that shall stop, by message: on the GPU there is time to hear it. */
  #stopped = 0;
  /** The call that runs, if it wants progress. @type {Request | null} */
  #running = null;

  /** @param {Port} port */
  constructor(port) {
    this.#port = port;
  }

  /** @param {Request} request */
  async receive(request) {
    const { id, kind, target, method, args } = request;
    if (kind === 'stop') {
      this.#stopped = id;
      return;
    }
    if (kind === 'dispose') {
      this.#objects.get(target)?.dispose?.();
      this.#objects.delete(target);
      return;
    }
    try {
      this.#running = request;
      const result = await (kind === 'load' ? this.#load(request) : this.#call(target, method, args));
      /** @type {Record<number, object>} */
      const states = {};
      const { value, transfer } = pack(result, true, (object) => this.#handleOf(object, states));
      for (const object of [target, ...handlesIn(args)]) this.#noteState(object, states);
      this.#port.post({ id, result: value, states, ...this.#news() }, transfer);
    } catch (error) {
      this.#port.post({ id, error: plainError(error), ...this.#news() }, []);
    } finally {
      this.#running = null;
    }
  }

  /** @param {Request} request */
  async #load({ args: [options], stop }) {
    this.#stop = stop ?? null;
    /** Of either kind: what it returns is awaited. @type {any} */
    const attention = await load(options);
    this.#attention = attention;
    return { info: attention.info };
  }

  /** What every answer tells of the instance. @returns {{ memory?: MemoryUsage, info?: Info }} `info` where it has changed */
  #news() {
    if (!this.#attention) return {};
    const { info, memory } = this.#attention;
    if (info === this.#info) return { memory };
    this.#info = info;
    const { backend } = contextOf('load', this.#attention);
    const isStopped = () => this.#isStopped();
    if (info.backend === 'webgpu') watchGpu(backend, isStopped);
    else watch(backend, { isStopped, report: (progress) => this.#report(progress) });
    return { memory, info };
  }

  /** Whether the running call shall end. */
  #isStopped() {
    const id = this.#running?.id;
    return this.#stopped === id || (this.#stop !== null && Atomics.load(this.#stop, 0) === id);
  }

  /** @param {object} progress */
  #report(progress) {
    if (this.#running?.reports) this.#port.post({ id: this.#running.id, progress }, []);
  }

  /** A model, by modules that are fetched for the first one. @param {any} options */
  async #loadModel(options) {
    const { HostedModel, kHosted } = await import('./worker-models.js');
    for (const kind of kHosted) if (!this.#kinds.includes(kind)) this.#kinds.push(kind);
    /** As a signal: for calls whenever they run. @type {any} */
    const signal = Object.defineProperty({ reason: 'stopped' }, 'aborted', { get: () => this.#isStopped() });
    const onProgress = (/** @type {object} */ progress) => this.#report(progress);
    return HostedModel.load(/** @type {Attention} */ (this.#attention), options, { signal, onProgress });
  }

  /** @param {number} target @param {string} method @param {any[]} args */
  #call(target, method, args) {
    const object = target === 0 ? this.#attention : this.#objects.get(target);
    const given = mapParts(args, (part) => (isHandle(part) ? this.#objects.get(part.attentionHandle) : undefined));
    if (target === 0 && method === 'transformer') return this.#loadModel(given[0]);
    return object[method](...given);
  }

  /** @param {object} object @param {Record<number, object>} states */
  #handleOf(object, states) {
    if (!this.#kinds.some(([Type]) => object instanceof Type)) return undefined;
    for (const [handle, known] of this.#objects) if (known === object) return { attentionHandle: handle };
    const handle = ++this.#last;
    this.#objects.set(handle, object);
    this.#noteState(handle, states);
    return { attentionHandle: handle };
  }

  /** What the page shows of an object without asking. @param {number} handle @param {Record<number, object>} states */
  #noteState(handle, states) {
    const object = this.#objects.get(handle);
    const state = this.#kinds.find(([Type]) => object instanceof Type)?.[1](object);
    if (state) states[handle] = state;
  }
}

/**
 * Calls on the GPU are handed over whole: what a stopped one noted is taken back when it has run.
 * @param {WasmBackend} backend @param {() => boolean} isStopped
 */
function watchGpu(backend, isStopped) {
  const { run } = backend;
  /** @type {any} */ (backend).run = async (/** @type {() => unknown} */ body, /** @type {() => void} */ undo) => {
    const result = await run.call(backend, body, undo);
    if (isStopped()) undo?.();
    return result;
  };
}

/** @param {any[]} args @returns {number[]} */
function handlesIn(args) {
  /** @type {number[]} */
  const handles = [];
  mapParts(args, (part) => {
    if (isHandle(part)) handles.push(part.attentionHandle);
    return undefined;
  });
  return handles;
}

/** @param {unknown} error */
function plainError(error) {
  if (error instanceof AttentionError) {
    const { code, message, cause } = error;
    return { code, message, cause: cause instanceof Error ? cause.message : undefined };
  }
  return { message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}
