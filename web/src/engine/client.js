// The page's side of the worker: calls that give promises.

/** @import { Progress } from '../types.js' */
/** @import { calls } from './worker.js' */

/** @typedef {typeof calls} Calls */
/** @typedef {{ resolve: (value: any) => void, reject: (error: Error) => void, onProgress?: (progress: Progress) => void }} Waiting */

export function createEngine() {
  const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
  /** @type {Map<number, Waiting>} */
  const waiting = new Map();
  let last = 0;

  worker.addEventListener('message', ({ data: { id, result, error, progress } }) => {
    const call = waiting.get(id);
    if (progress) return call?.onProgress?.(progress);
    waiting.delete(id);
    if (error === undefined) call?.resolve(result);
    else call?.reject(Object.assign(new Error(error.message), { code: error.code }));
  });
  worker.addEventListener('error', ({ message }) => {
    for (const { reject } of waiting.values()) reject(new Error(message || 'the worker did not start'));
    waiting.clear();
  });

  return {
    /**
     * @template {keyof Calls} Name
     * @param {Name} call @param {Parameters<Calls[Name]>[0]} [argument] @param {(progress: Progress) => void} [onProgress]
     * @returns {ReturnType<Calls[Name]>}
     */
    ask(call, argument, onProgress) {
      const id = ++last;
      const answer = new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject, onProgress });
      });
      worker.postMessage({ id, call, argument });
      return /** @type {ReturnType<Calls[Name]>} */ (answer);
    },
  };
}

/** @typedef {ReturnType<typeof createEngine>} Engine */
