// The errors of calls in a worker.
import { AttentionError } from './errors.js';
import { throwIfAborted } from './transformer/pace.js';

/** @import { ErrorCode } from './errors.js' */

/** @param {string} fn @param {string} what is no longer there */
export function gone(fn, what) {
  const rule = `${what} must be there still, got one that was disposed of, or was lost when a worker was ended`;
  return new AttentionError('DISPOSED', `${fn}: ${rule}`);
}

/** What a call that was stopped rejects with. @param {{ fn: string, signal: AbortSignal | null }} call */
export function aborted({ fn, signal }) {
  try {
    throwIfAborted(fn, signal);
  } catch (error) {
    return /** @type {AttentionError} */ (error);
  }
  return new AttentionError('ABORTED', `${fn}: the worker must run, got one that was ended`);
}

/** What the worker said, as an error here. @param {{ fn: string, signal: AbortSignal | null }} call @param {{ code?: ErrorCode, message: string, cause?: string }} error */
export function errorFrom(call, { code, message, cause }) {
  if (code === 'ABORTED') return aborted(call);
  return code ? new AttentionError(code, message, cause ? { cause: new Error(cause) } : undefined) : new Error(message);
}
