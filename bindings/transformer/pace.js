// Long work in slices: lets the event loop run now and then, and looks whether it shall end.
import { AttentionError, refuse } from '../errors.js';

const kSlice = 20; // milliseconds of work between two looks at the event loop

/** A macrotask. Not setTimeout: browsers stretch it to 4 ms, and to a second in hidden tabs. @returns {Promise<void>} */
function nextTask() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** @param {string} fn @param {unknown} signal @returns {AbortSignal | null} */
export function signalOf(fn, signal) {
  if (signal === undefined || signal === null) return null;
  if (typeof (/** @type {any} */ (signal).aborted) !== 'boolean') {
    refuse('INVALID_OPTION', fn, 'signal must be an AbortSignal', signal);
  }
  return /** @type {AbortSignal} */ (signal);
}

/** @param {string} fn @param {AbortSignal | null} signal */
export function throwIfAborted(fn, signal) {
  if (!signal?.aborted) return;
  const { reason } = signal;
  const why = reason instanceof Error ? reason.message : String(reason);
  throw new AttentionError('ABORTED', `${fn}: signal must not be aborted, got ${why}`, { cause: reason });
}

/** Waits for the event loop when a slice of work is over. @returns {() => Promise<void>} */
export function pacer() {
  let end = performance.now() + kSlice;
  return async () => {
    if (performance.now() < end) return;
    await nextTask();
    end = performance.now() + kSlice;
  };
}
