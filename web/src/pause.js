/**
 * An action with the last of the values that it was asked for, once nobody has asked for some time.
 * @template T
 * @param {number} milliseconds @param {(value: T) => void} action
 */
export function afterPause(milliseconds, action) {
  let timer = 0;
  /** @type {{ promise: Promise<void>, end: () => void } | null} */
  let waiting = null;
  return {
    /** @param {T} value */
    ask(value) {
      clearTimeout(timer);
      if (!waiting) {
        let end = () => {};
        const promise = new Promise((/** @type {(value: void) => void} */ resolve) => {
          end = resolve;
        });
        waiting = { promise, end };
      }
      timer = window.setTimeout(() => {
        action(value);
        waiting?.end();
        waiting = null;
      }, milliseconds);
    },
    /** Until the action has begun; null where nobody has asked. */
    get waiting() {
      return waiting?.promise ?? null;
    },
  };
}
