// The one error class of the package, its one table of codes, and how a refused value is shown.

/** What each code of an AttentionError means. */
export const errorCodes = /* @__PURE__ */ Object.freeze({
  INVALID_SHAPE: 'a shape, a length or a count that does not fit the others',
  INVALID_OPTION: 'an unknown option, or a value that the option does not take',
  INVALID_DTYPE: 'data of a type that is not accepted there',
  OUT_OF_MEMORY: 'the memory for the call could not be had; the message tells the bytes',
  CAPACITY: 'more tokens than the cache was made for',
  DISPOSED: 'use of something after its dispose()',
  UNSUPPORTED: 'an explicit request that this engine or this build cannot meet',
  LOAD_FAILED: 'a file of the package did not load; `cause` tells why',
  DEVICE_LOST: 'the GPU device went away',
  ABORTED: 'an AbortSignal ended the work',
});

/** @typedef {keyof typeof errorCodes} ErrorCode */

/**
 * Every failure of the package. `message` reads *function: argument rule, got value*; `code` is for programs.
 * After any error the instance works on and holds no more memory than before the call.
 */
export class AttentionError extends Error {
  /**
   * @param {ErrorCode} code
   * @param {string} message
   * @param {{ cause?: unknown }} [options]
   */
  constructor(code, message, options) {
    super(message, options);
    /** @type {'AttentionError'} */
    this.name = 'AttentionError';
    /** @type {ErrorCode} */
    this.code = code;
  }
}

/**
 * Throws the error of a broken rule.
 * @param {ErrorCode} code
 * @param {string} fn the function that was called
 * @param {string} rule the argument and what holds for it: `q must have rank 2, 3 or 4`
 * @param {unknown} value what was given instead
 * @returns {never}
 */
export function refuse(code, fn, rule, value) {
  throw new AttentionError(code, `${fn}: ${rule}, got ${show(value)}`);
}

/** @param {string} fn @param {string} what was disposed of */
export const disposedError = (fn, what) =>
  new AttentionError('DISPOSED', `${fn}: ${what} must not be used after dispose(), got a disposed one`);

/**
 * A value as it stands in a message: short, and never a getter's side effect.
 * @param {unknown} value
 * @returns {string}
 */
export function show(value) {
  if (typeof value === 'string') return `'${value.length > 60 ? `${value.slice(0, 60)}…` : value}'`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (ArrayBuffer.isView(value)) {
    return `${/** @type {any} */ (value)[Symbol.toStringTag] ?? 'DataView'}(${/** @type {any} */ (value).length ?? value.byteLength})`;
  }
  if (Array.isArray(value)) {
    const items = value.slice(0, 8).map((item) => (typeof item === 'object' && item !== null ? '…' : show(item)));
    return `[${items.join(', ')}${value.length > 8 ? ', …' : ''}]`;
  }
  const name = Object.getPrototypeOf(value)?.constructor?.name;
  return name && name !== 'Object' ? `an object of type ${name}` : `an object with keys ${show(Object.keys(value))}`;
}
