// Work on either backend, written once: what wasm gives at once is a promise on the GPU.

/**
 * @template T, R
 * @param {T | Promise<T>} value @param {(value: T) => R} next
 * @returns {R} a promise of it where the value is one
 */
export const after = (value, next) =>
  value instanceof Promise ? /** @type {any} */ (value.then(next)) : next(/** @type {T} */ (value));

/**
 * Runs work that yields what it waits for, and goes on with what comes of it: to its end at once, as long as nothing of
 * that is a promise.
 * @template R
 * @param {Generator<any, R, any>} work
 * @returns {R} a promise of it where anything was one
 */
export function done(work) {
  /** @param {any} value @returns {any} */
  const on = (value) => {
    for (let step = work.next(value); ; step = work.next(step.value)) {
      if (step.done) return step.value;
      if (step.value instanceof Promise) return step.value.then(on);
    }
  };
  return on(undefined);
}
