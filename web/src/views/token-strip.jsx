// The text as tokens, with the heaviest weights of the row in focus as arcs over it.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { pathOf } from './arc-path.js';
import { useGrowing } from './use-growing.js';
import { useStore } from './use-store.js';
import { formatValue, valueAt } from './words.js';

/** @import { App } from './use-store.js' */
/** @import { Matrix } from '../types.js' */
/** @typedef {{ column: number, value: number, path: string }} Arc */

/** The largest values of a row. @param {Matrix} matrix @param {number} row @param {number} count @returns {{ column: number, value: number }[]} */
export function heaviest(matrix, row, count) {
  /** @type {{ column: number, value: number }[]} */
  const found = [];
  for (let column = 0; column < matrix.columns; column++) {
    const value = valueAt(matrix, row, column);
    if (Number.isNaN(value) || value === 0) continue;
    const place = found.findIndex((each) => Math.abs(value) > Math.abs(each.value));
    if (place >= 0) found.splice(place, 0, { column, value });
    else if (found.length < count) found.push({ column, value });
    if (found.length > count) found.pop();
  }
  return found;
}

/** @type {string[]} */
const kNone = [];

/** @param {{ app: App }} props */
export function TokenStrip({ app }) {
  const { store, shown } = app;
  const state = useStore(store, 'focus', 'locked', 'arcs', 'rows');
  const { run, matrix, view } = useStore(shown, 'matrix', 'writing');
  const list = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [arcs, setArcs] = useState(/** @type {Arc[]} */ ([]));
  const [size, setSize] = useState('');
  const tokens = useGrowing(run?.tokens ?? kNone);
  const prompt = run?.prompt ?? 0;
  const { row, column } = state.focus;

  // The same elements while the tokens are the same: moving the focus costs nothing here.
  const items = useMemo(
    () =>
      tokens.map((token, i) => (
        <div
          key={i}
          data-index={i}
          role="option"
          aria-selected="false"
          tabIndex={-1}
          class={i < prompt ? 'token' : 'token written'}
        >
          <span>{token}</span>
          <span class="number index">{i}</span>
        </div>
      )),
    [tokens, prompt],
  );

  useLayoutEffect(() => markTokens(list.current, { row, column, rows: state.rows, locked: state.locked }));
  useLayoutEffect(() => keepInSight(list.current, row), [row, size, tokens]);
  useLayoutEffect(() => {
    const items = list.current?.children;
    if (!items || !matrix || items.length !== matrix.columns) return setArcs([]);
    setArcs(
      heaviest(matrix, row, state.arcs).map((each) => ({
        ...{ ...each, path: pathOf(boxOf(items[row]), boxOf(items[each.column])) },
      })),
    );
  }, [matrix, row, state.arcs, size]);
  useEffect(() => {
    const node = list.current;
    if (!node) return;
    const observer = new ResizeObserver(() => setSize(`${node.clientWidth} ${node.clientHeight}`));
    observer.observe(node);
    return () => observer.disconnect();
  }, []);

  const largest = arcs.reduce((most, { value }) => Math.max(most, Math.abs(value)), 0);
  const strength = (/** @type {number} */ value) =>
    view?.show === 'weights' ? Math.min(1, value) : Math.abs(value) / largest;
  return (
    <div class="strip">
      <div class="strip-inner">
        <div
          id="tokens"
          class="tokens"
          ref={list}
          role="listbox"
          aria-label="Tokens: the one that asks"
          aria-multiselectable="true"
          {...handlers(app)}
        >
          {items}
        </div>
        <svg class="arcs" aria-hidden="true">
          {arcs.map((arc) => (
            <path
              key={arc.column}
              d={arc.path}
              class={arc.column === column ? 'chosen' : arc.value < 0 ? 'negative' : ''}
              stroke-width={1 + 5 * strength(arc.value)}
              stroke-opacity={0.25 + 0.75 * strength(arc.value)}
              onPointerEnter={() => {
                if (!store.state.locked) store.set({ focus: { row, column: arc.column } });
              }}
            >
              <title>{`${formatValue(view?.show ?? 'weights', arc.value)}: ${row} “${tokens[row]}” asks ${arc.column} “${tokens[arc.column]}”`}</title>
            </path>
          ))}
        </svg>
      </div>
    </div>
  );
}

/**
 * The marks of the strip, on what is there: a strip of a thousand tokens isn't built again for each of them.
 * @param {HTMLElement | null} list @param {{ row: number, column: number, rows: number[], locked: boolean }} marks
 */
function markTokens(list, { row, column, rows, locked }) {
  if (!list) return;
  for (const item of list.querySelectorAll('.asks, .asked, .summed')) {
    item.classList.remove('asks', 'asked', 'summed', 'locked');
    item.setAttribute('aria-selected', 'false');
    /** @type {HTMLElement} */ (item).tabIndex = -1;
  }
  const at = (/** @type {number} */ i) => /** @type {HTMLElement | undefined} */ (list.children[i]);
  for (const i of rows) at(i)?.classList.add('summed');
  for (const i of rows) at(i)?.setAttribute('aria-selected', 'true');
  at(column)?.classList.add('asked');
  const asks = at(row);
  if (!asks) return;
  asks.classList.add('asks');
  asks.classList.toggle('locked', locked);
  asks.setAttribute('aria-selected', 'true');
  asks.tabIndex = 0;
}

/** Scrolls the strip, and the strip alone, to a token; not under a pointer that is about to choose one. @param {HTMLElement | null} list @param {number} row */
function keepInSight(list, row) {
  const strip = list?.closest('.strip');
  const item = /** @type {HTMLElement | undefined} */ (list?.children[row]);
  if (!strip || !item || strip.matches(':hover')) return;
  const room = item.offsetHeight + 24; // with the arcs above it
  if (item.offsetTop - 24 < strip.scrollTop) strip.scrollTop = item.offsetTop - room;
  else if (item.offsetTop + room > strip.scrollTop + strip.clientHeight) {
    strip.scrollTop = item.offsetTop + room - strip.clientHeight;
  }
}

/** Pointer and keys on a token. @param {App} app */
function handlers({ store, shown }) {
  const indexOf = (/** @type {Event} */ event) => {
    const item = /** @type {HTMLElement | null} */ (/** @type {HTMLElement} */ (event.target).closest('.token'));
    return item ? Number(item.dataset.index) : -1;
  };
  /** @param {number} row */
  const focusOf = (row) => {
    const { matrix } = shown.state;
    const first = Math.max(row, matrix?.from ?? 0);
    const best = matrix ? heaviest(matrix, first, 1)[0]?.column : undefined;
    return { row: first, column: best ?? Math.min(store.state.focus.column, first) };
  };
  /** @param {number} row */
  const toggleRow = (row) => {
    const { rows } = store.state;
    store.set({
      rows: rows.includes(row) ? rows.filter((each) => each !== row) : [...rows, row].sort((a, b) => a - b),
    });
  };
  return {
    onPointerOver(/** @type {PointerEvent} */ event) {
      const row = indexOf(event);
      if (row >= 0 && event.pointerType === 'mouse' && !store.state.locked && row !== store.state.focus.row)
        store.set({ focus: focusOf(row) });
    },
    onClick(/** @type {MouseEvent} */ event) {
      const row = indexOf(event);
      if (row < 0) return;
      if (event.shiftKey || event.ctrlKey || event.metaKey) return toggleRow(row);
      const again = store.state.locked && store.state.focus.row === row;
      store.set({ focus: focusOf(row), locked: !again });
    },
    onKeyDown(/** @type {KeyboardEvent} */ event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const { row } = store.state.focus;
      const last = (shown.state.run?.tokens.length ?? 1) - 1;
      const move = { ArrowLeft: row - 1, ArrowRight: row + 1, Home: 0, End: last }[event.key];
      if (move !== undefined) {
        const next = Math.max(0, Math.min(last, move));
        store.set({ focus: focusOf(next) });
        const list = /** @type {HTMLElement} */ (event.currentTarget);
        requestAnimationFrame(() =>
          /** @type {HTMLElement | undefined} */ (list.children[store.state.focus.row])?.focus(),
        );
      } else if (event.key === 'Enter') store.set({ locked: !store.state.locked });
      else if (event.key === ' ') toggleRow(row);
      else return;
      event.preventDefault();
    },
  };
}

/** @param {Element} item @returns {import('./arc-path.js').Box} */
function boxOf(item) {
  const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = /** @type {HTMLElement} */ (item);
  return { x: offsetLeft + offsetWidth / 2, top: offsetTop, bottom: offsetTop + offsetHeight };
}
