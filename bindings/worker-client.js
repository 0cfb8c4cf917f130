// The page's side of a worker: calls one after the other, stopped by their signals, in a worker that comes up again.
//
// How a call is stopped. Where memory can be shared (Node, cross-origin isolated pages), the worker looks at a flag
// before every kernel and every slice of a long one: it stops within some ten milliseconds, frees what the call took,
// and keeps tensors, caches and layers. A worker that has not answered after kPatience, because the flag can't be
// shared or one kernel takes long, is ended, which stops anything at once and gives all its memory back; what was kept in it
// is lost and throws DISPOSED, and the next call brings a fresh one up.
//
// On the GPU nothing stops what was submitted, not even the end of the worker. So the call rejects at once and the worker
// stays, with all that is kept in it; calls behind it wait until the GPU is through, and nothing is left of its result.
import { AttentionError } from './errors.js';
import { signalOf, throwIfAborted } from './transformer/pace.js';
import { kRelease } from './worker-calls.js';
import { aborted, errorFrom, gone } from './worker-errors.js';
import { isHandle, mapParts, pack } from './worker-messages.js';
import { startWorker } from './worker-port.js';
import { Remotes } from './worker-remotes.js';
import { Signals } from './worker-signals.js';

/** @import { Info, MemoryUsage } from './types.js' */
/** @import { Call, Remote } from './worker-calls.js' */
/** @import { CallOptions } from './worker-types.js' */
/** @import { WorkerPort } from './worker-port.js' */

/** Milliseconds that a call has to stop by itself. */
const kPatience = 50;

export class WorkerClient {
  #options;
  #make;
  /** @type {WorkerPort | null} */
  #port = null;
  /** Counts workers; handles of earlier ones mean nothing. */
  #generation = 0;
  /** @type {Call[]} */
  #queue = [];
  /** @type {{ id: number, call: Call } | null} */
  #running = null;
  #last = 0;
  /** @type {Int32Array | null} */
  #stop = null;
  /** Objects that nobody reaches any more go from the worker, too. */
  #remotes = new Remotes((remote) => this.release(remote));
  #signals = new Signals();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #disposed = false;
  #isOnGpu = false;
  /** Hears what has come up. @type {((info: Info) => void) | null} */
  onInfo = null;
  /** As of the last answer. @type {MemoryUsage} */
  memory = { allocated: 0, total: 0 };

  /** @param {object} options for load() in the worker @param {(() => any) | null} make */
  constructor(options, make) {
    this.#options = options;
    this.#make = make;
  }

  get disposed() {
    return this.#disposed;
  }

  /** @param {Remote} remote whether the object is still there */
  holds({ generation, handle }) {
    return !this.#disposed && generation === this.#generation && this.#remotes.has(handle);
  }

  /**
   * Brings the worker up, or up again.
   * @param {AbortSignal | null} signal
   * @returns {Promise<{ info: Info }>}
   */
  load(signal) {
    return this.#enqueue({ fn: 'load', kind: 'load', target: 0, method: '', args: [this.#options] }, { signal }, true);
  }

  /**
   * @param {string} fn for messages @param {Remote | null} remote null: the instance @param {string} method
   * @param {any[]} args @param {CallOptions} [options]
   * @param {new (client: WorkerClient, remote: Remote) => { remote: Remote }} [Type] of the object that the result is
   * @returns {Promise<any>}
   */
  async call(fn, remote, method, args, options = {}, Type) {
    if (this.#disposed || (remote && !this.holds(remote))) throw gone(fn, remote ? 'it' : 'the instance');
    const request = { fn, kind: /** @type {const} */ ('call'), target: remote?.handle ?? 0, method, args };
    const answer = await this.#enqueue(request, options, false);
    const make = (/** @type {Remote} */ made) => new /** @type {any} */ (Type)(this, made);
    return mapParts(answer, (part) =>
      isHandle(part) ? this.#remotes.objectOf(part.attentionHandle, this.#generation, make) : undefined,
    );
  }

  /** @param {Remote} remote */
  release(remote) {
    if (!this.holds(remote)) return;
    this.#remotes.delete(remote.handle);
    // In its turn: calls that wait may have it among their arguments.
    const { handle: target, generation } = remote;
    this.#queue.push({ ...kRelease, target, generation });
    this.#next();
  }

  /** Ends the worker; calls that are under way or waiting reject. */
  dispose() {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#end((call) => gone(call.fn, 'the instance'), true);
  }

  /**
   * @param {Pick<Call, 'fn' | 'kind' | 'target' | 'method' | 'args'>} request @param {CallOptions} options
   * @param {boolean} isFirst whether it goes before all that waits
   * @returns {Promise<any>}
   */
  async #enqueue(request, options, isFirst) {
    const { fn } = request;
    const signal = signalOf(fn, options.signal);
    throwIfAborted(fn, signal);
    let generation = request.target ? this.#generation : 0;
    const { value, transfer } = pack(request.args, options.transfer === true, (object) => {
      const { remote } = /** @type {{ remote?: Remote }} */ (object);
      if (!remote) return undefined;
      if (!this.holds(remote)) throw gone(fn, 'an argument');
      generation = this.#generation;
      return { attentionHandle: remote.handle };
    });
    return new Promise((resolve, reject) => {
      const onProgress = options.onProgress ?? null;
      /** @type {Call} */
      const call = {
        ...{ ...request, args: value, transfer, generation, signal, onProgress, resolve, reject, isSettled: false },
        release: signal ? this.#signals.watch(signal, () => this.#abort(call)) : () => {},
      };
      if (isFirst) this.#queue.unshift(call);
      else this.#queue.push(call);
      this.#next();
    });
  }

  /** Starts what waits, if nothing runs. */
  #next() {
    if (this.#running) return;
    let call = this.#queue.shift();
    for (; call?.kind === 'dispose'; call = this.#queue.shift()) {
      if (call.generation === this.#generation) this.#port?.post({ kind: 'dispose', target: call.target }, []);
    }
    this.#port?.hold(call !== undefined);
    if (!call) return;
    if (call.generation && call.generation !== this.#generation) {
      this.#settle(call, null, gone(call.fn, 'an argument'));
      this.#next();
      return;
    }
    const id = ++this.#last;
    this.#running = { id, call };
    if (call.kind === 'load') {
      this.#start(id, call);
    } else if (this.#port) {
      this.#post(id, call);
    } else {
      // The worker was ended: the call waits for a fresh one.
      this.#running = null;
      this.#queue.unshift(call);
      this.load(null).catch((error) => {
        const failed = this.#queue.shift();
        if (failed) this.#settle(failed, null, error);
        this.#next();
      });
    }
  }

  /** @param {number} id @param {Call} call */
  async #start(id, call) {
    const generation = ++this.#generation;
    const isCurrent = () => generation === this.#generation;
    /** @type {WorkerPort | null} */
    let port = null;
    try {
      port = await startWorker(this.#make, {
        message: (message) => isCurrent() && this.#receive(message),
        failure: (cause) => isCurrent() && this.#fail(cause),
      });
      if (!isCurrent()) return port.end(); // aborted meanwhile
      this.#port = port;
      this.#stop = canShare() ? new Int32Array(new SharedArrayBuffer(4)) : null;
      this.#post(id, call, this.#stop);
    } catch (cause) {
      if (isCurrent()) this.#fail(cause);
    }
  }

  /** @param {number} id @param {Call} call @param {Int32Array | null} [stop] */
  #post(id, call, stop) {
    const { kind, target, method, args, onProgress } = call;
    const request = { id, kind, target, method, args, reports: onProgress !== null, ...(stop && { stop }) };
    try {
      this.#port?.post(request, call.transfer);
    } catch (cause) {
      // What can't be cloned: functions, elements of a page and the like.
      const why = cause instanceof Error ? cause.message : String(cause);
      this.#running = null;
      this.#settle(
        call,
        null,
        new AttentionError('INVALID_OPTION', `${call.fn}: arguments must be plain data, got ${why}`, { cause }),
      );
      this.#next();
    }
  }

  /** @param {any} message */
  #receive({ id, result, error, progress, states, memory, info }) {
    const running = this.#running;
    if (running === null || running.id !== id) return;
    const { call } = running;
    if (progress) {
      call.onProgress?.(progress);
      return;
    }
    clearTimeout(this.#timer);
    this.#running = null;
    if (memory) this.memory = memory;
    if (info) {
      this.#isOnGpu = info.backend === 'webgpu';
      this.onInfo?.(info);
    }
    for (const [handle, state] of Object.entries(states ?? {})) this.#remotes.learn(Number(handle), state);
    if (!call.isSettled) this.#settle(call, result, error && errorFrom(call, error));
    // It was stopped, and nobody will have what it made.
    else for (const target of this.#remotes.strangersIn(result)) this.#port?.post({ kind: 'dispose', target }, []);
    this.#next();
  }

  /** @param {Call} call @param {unknown} result @param {unknown} [error] */
  #settle(call, result, error) {
    call.release();
    call.isSettled = true;
    call.onProgress = null;
    if (error) call.reject(error);
    else call.resolve(result);
  }

  /** @param {Call} call */
  #abort(call) {
    if (this.#running?.call !== call) {
      this.#queue = this.#queue.filter((waiting) => waiting !== call);
      this.#settle(call, null, aborted(call));
      return;
    }
    if (this.#isOnGpu && call.kind === 'call') {
      this.#port?.post({ kind: 'stop', id: this.#running.id }, []);
      this.#settle(call, null, aborted(call));
      return;
    }
    if (this.#stop) Atomics.store(this.#stop, 0, this.#running.id);
    const end = () => this.#end((ended) => aborted(ended), false);
    if (call.kind === 'load') end();
    else this.#timer = setTimeout(end, kPatience);
  }

  /** A worker that did not start or broke down. @param {unknown} cause */
  #fail(cause) {
    const { code, message } = /** @type {{ code?: string, message?: string }} */ (cause ?? {});
    const kind = code === 'ERR_WORKER_OUT_OF_MEMORY' ? 'OUT_OF_MEMORY' : 'LOAD_FAILED';
    this.#end(
      ({ fn }) => new AttentionError(kind, `${fn}: the worker must run, got ${message || cause}`, { cause }),
      false,
    );
  }

  /** Ends the worker and what it holds. @param {(call: Call) => AttentionError} reason @param {boolean} forGood */
  #end(reason, forGood) {
    clearTimeout(this.#timer);
    ++this.#generation;
    this.#port?.end();
    this.#port = null;
    this.#stop = null;
    this.#remotes.clear();
    this.memory = { allocated: 0, total: 0 };
    const ended = this.#running && !this.#running.call.isSettled ? [this.#running.call] : [];
    this.#running = null;
    if (forGood) ended.push(...this.#queue.splice(0));
    for (const call of ended) this.#settle(call, null, reason(call));
    this.#next();
  }
}

/** Whether a flag can be shared with a worker. */
const canShare = () => typeof SharedArrayBuffer !== 'undefined' && globalThis.crossOriginIsolated !== false;
