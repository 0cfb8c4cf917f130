// A worker of whatever kind the engine has: started, heard, ended.
import { isNode, nodeModule } from './engine.js';

/**
 * @typedef {object} WorkerPort
 * @property {(message: unknown, transfer: ArrayBuffer[]) => void} post
 * @property {() => void} end at once, whatever it is doing
 * @property {(isWaiting: boolean) => void} hold whether a script waits for it; Node only
 */

/** What a port hears. @typedef {{ message: (message: any) => void, failure: (cause: unknown) => void }} Listener */

/**
 * @param {(() => any) | null} make the caller's own way to make a worker
 * @param {Listener} listener
 * @returns {Promise<WorkerPort>}
 */
export async function startWorker(make, listener) {
  // Bundlers look for just this form.
  const makePage = () => new Worker(new URL('./worker-main.js', import.meta.url), { type: 'module' });
  const makeNode = async () => {
    const threads = /** @type {typeof import('node:worker_threads')} */ (await nodeModule('worker_threads'));
    return new threads.Worker(new URL('./worker-main.js', import.meta.url));
  };
  const worker = await (make ?? (isNode() ? makeNode : makePage))();
  if (typeof worker.on === 'function') {
    worker.on('message', listener.message);
    worker.on('error', listener.failure);
    worker.on('exit', (/** @type {number} */ code) => listener.failure(new Error(`it ended with exit code ${code}`)));
  } else {
    let isReady = false;
    worker.onmessage = (/** @type {MessageEvent} */ { data }) => {
      if (data.ready) isReady = true;
      else listener.message(data);
    };
    worker.onmessageerror = () => listener.failure(new Error('a message could not be read'));
    worker.onerror = (/** @type {ErrorEvent} */ event) => {
      // Once it answers, failed calls say so themselves: what else goes wrong in the file is not ours.
      if (isReady) return;
      event.preventDefault();
      listener.failure(new Error(event.message || 'its file did not load'));
    };
  }
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    end: () => void worker.terminate(),
    hold: (isWaiting) => void (isWaiting ? worker.ref?.() : worker.unref?.()),
  };
}
