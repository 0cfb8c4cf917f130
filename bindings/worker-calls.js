// Calls of a page to its worker, and the objects there that it holds.

/** @import { CallOptions, Progress } from './worker-types.js' */

/**
 * @typedef {object} Call
 * @property {string} fn
 * @property {'load' | 'call' | 'dispose'} kind
 * @property {number} target
 * @property {string} method
 * @property {any[]} args
 * @property {ArrayBuffer[]} transfer
 * @property {number} generation of the worker whose handles it uses; 0: it uses none
 * @property {AbortSignal | null} signal
 * @property {((progress: Progress) => void) | null} onProgress
 * @property {(value: any) => void} resolve
 * @property {(error: unknown) => void} reject
 * @property {() => void} release takes the listener off the signal
 * @property {boolean} isSettled it may be before the worker is through with it
 */

/** Nobody waits for it. @type {Omit<Call, 'target' | 'generation'>} */
export const kRelease = {
  ...{ fn: 'dispose', kind: 'dispose', method: '', args: [], transfer: [], signal: null, onProgress: null },
  ...{ resolve: () => {}, reject: () => {}, release: () => {}, isSettled: false },
};

/** What the page knows of an object in the worker. @typedef {{ handle: number, generation: number, state: any }} Remote */

/**
 * What an options argument says of the call itself, and the options of the function.
 * @param {Record<string, any> | null | undefined} options
 * @returns {{ own: CallOptions, rest: Record<string, any> }}
 */
export function parted(options) {
  const { signal, onProgress, transfer, ...rest } = options ?? {};
  return { own: { signal, onProgress, transfer }, rest };
}
