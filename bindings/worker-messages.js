// What passes between a page and its worker: plain data with buffers moved instead of copied, and numbers in place of
// what stays in the worker.

/** Stands for an object in the worker. @typedef {{ attentionHandle: number }} Handle */

/** @param {any} value @returns {value is Handle} */
export const isHandle = (value) => typeof value?.attentionHandle === 'number';

/** @param {unknown} value */
const isPlain = (value) => {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};

/**
 * A value with its parts replaced, in fresh objects and arrays.
 * @param {any} value
 * @param {(part: object) => unknown} replace gets what is neither a plain object nor an array; undefined keeps it
 * @returns {any}
 */
export function mapParts(value, replace) {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => mapParts(item, replace));
  if (ArrayBuffer.isView(value) || isHandle(value) || !isPlain(value)) return replace(value) ?? value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, mapParts(part, replace)]));
}

/** @typedef {{ value: any, transfer: ArrayBuffer[] }} Packed */

/**
 * Gets a value ready for postMessage. Views go as whole buffers: `move` moves those of the caller, else a copy is moved.
 * Shared memory stays where it is.
 * @param {any} value
 * @param {boolean} move
 * @param {(object: object) => Handle | undefined} handleOf
 * @returns {Packed}
 */
export function pack(value, move, handleOf) {
  /** @type {Set<ArrayBuffer>} */
  const transfer = new Set();
  /** One copy of what is given more than once. @type {Map<object, any>} */
  const copies = new Map();
  const packed = mapParts(value, (part) => {
    const handle = handleOf(part);
    if (handle) return handle;
    const isView = ArrayBuffer.isView(part);
    const buffer = isView ? part.buffer : part;
    if (!(buffer instanceof ArrayBuffer)) return undefined;
    const sent = move ? part : (copies.get(part) ?? (isView ? copyOf(part) : buffer.slice(0)));
    copies.set(part, sent);
    transfer.add(/** @type {ArrayBuffer} */ (ArrayBuffer.isView(sent) ? sent.buffer : sent));
    return sent;
  });
  return { value: packed, transfer: [...transfer] };
}

/** Of the elements of a view alone, not of the buffer around it. @param {any} view */
function copyOf(view) {
  if (typeof view.slice === 'function' && view.constructor.name !== 'Buffer') return view.slice();
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice();
}
