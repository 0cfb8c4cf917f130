// Stores for Preact components.
import { useLayoutEffect, useReducer, useRef } from 'preact/hooks';

/** @import { Session } from '../session.js' */
/** @import { ShownStore } from '../shown.js' */
/** @import { Cell, Store } from '../state.js' */
/** @import { Matrix } from '../types.js' */

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

/** From so many tokens on a view of all of them takes longer than the pointer to the next. */
const kLong = 128;
const kCalm = 80; // milliseconds

/**
 * The cell in focus, for views that are drawn from all tokens: of a long text a few times a second, so that the matrix can
 * follow the pointer.
 * @param {Store} store @param {Matrix | null} matrix @returns {Cell}
 */
export function useCalmFocus(store, matrix) {
  const isLong = matrix !== null && matrix.columns > kLong;
  const [, update] = useReducer((/** @type {number} */ count) => count + 1, 0);
  const kept = useRef({ focus: store.state.focus, matrix });
  if (!isLong || kept.current.matrix !== matrix) kept.current = { focus: store.state.focus, matrix };
  useLayoutEffect(() => {
    let timer = 0;
    const follow = () => {
      timer = 0;
      kept.current = { ...kept.current, focus: store.state.focus };
      update(undefined);
    };
    const end = store.subscribe((_, changed) => {
      if (!changed.has('focus')) return;
      if (!isLong) follow();
      else timer ||= window.setTimeout(follow, kCalm);
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [store, isLong]);
  return kept.current.focus;
}
