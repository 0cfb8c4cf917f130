// Stores for Preact components.
import { useLayoutEffect, useReducer } from 'preact/hooks';

/** @import { Session } from '../session.js' */
/** @import { ShownStore } from '../shown.js' */
/** @import { Store } from '../state.js' */

/** What every view of the instrument gets. @typedef {{ store: Store, shown: ShownStore, session: Session }} App */

/**
 * The state of a store; the component is drawn again when one of the named members changes.
 * @template {object} T
 * @param {{ state: T, subscribe: (listener: (state: T, changed: Set<keyof T>) => void) => () => void }} store
 * @param {...keyof T} names
 * @returns {T}
 */
export function useStore(store, ...names) {
  const [, update] = useReducer((/** @type {number} */ count) => count + 1, 0);
  useLayoutEffect(
    () =>
      store.subscribe((_, changed) => {
        if (names.some((name) => changed.has(name))) update(undefined);
      }),
    [store],
  );
  return store.state;
}
