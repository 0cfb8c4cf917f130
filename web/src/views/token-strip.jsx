// The text as tokens, with the heaviest weights of the row in focus as arcs over it.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { pathOf } from './arc-path.js';
import { useGrowing } from './use-growing.js';
import { useCalmFocus, useStore } from './use-store.js';
import { formatValue } from './words.js';

/** @import { App } from './use-store.js' */
/** @import { Matrix } from '../types.js' */
/** @import { Box } from './arc-path.js' */

/** The largest values by magnitude, the largest first; neither zeros nor what has no number. @param {Float32Array} values @param {number} count @returns {{ column: number, value: number }[]} */
export function heaviestOf(values, count) {
  /** @type {{ column: number, value: number }[]} */
  const found = [];
  for (let column = 0; column < values.length && count > 0; column++) {
    const value = values[column];
    const size = Math.abs(value);
    if (!(size > 0) || (found.length === count && size <= Math.abs(found[count - 1].value))) continue;
    const place = found.findIndex((each) => size > Math.abs(each.value));
    found.splice(place < 0 ? found.length : place, 0, { column, value });
    if (found.length > count) found.pop();
  }
  return found;
}

/** @param {Matrix} matrix @param {number} row @param {number} count */
export function heaviest({ data, from, columns }, row, count) {
  return row < from ? [] : heaviestOf(data.subarray((row - from) * columns, (row - from + 1) * columns), count);
}

/** @param {{ app: App }} props */
export function TokenStrip({ app }) {
  const { store, shown } = app;
  const state = useStore(store, 'locked', 'arcs', 'rows');
  const { run, matrix, view } = useStore(shown, 'matrix', 'writing');
  const { row, column } = useCalmFocus(store, matrix);
  const strip = useRef(/** @type {HTMLDivElement | null} */ (null));
  const list = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [{ boxes, room }, setPlaces] = useState(kNowhere);
  const tokens = useGrowing(run?.tokens ?? kNoTokens);
  const prompt = run?.prompt ?? 0;

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
  useLayoutEffect(() => keepInSight(strip.current, boxes[row], room), [row, boxes]);
  // Measured once: to ask for a place makes the browser lay out all that has changed.
  const measure = () => setPlaces(placesIn(/** @type {HTMLElement} */ (strip.current), list.current));
  useLayoutEffect(measure, [items]);
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(/** @type {HTMLElement} */ (list.current));
    return () => observer.disconnect();
  }, []);
  const arcs = useMemo(() => {
    if (!matrix || boxes.length !== matrix.columns) return [];
    return heaviest(matrix, row, state.arcs).map((each) => ({
      ...{ ...each, path: pathOf(boxes[row], boxes[each.column]) },
    }));
  }, [matrix, row, state.arcs, boxes]);

  const largest = arcs.reduce((most, { value }) => Math.max(most, Math.abs(value)), 0);
  const strength = (/** @type {number} */ value) =>
    view?.show === 'weights' ? Math.min(1, value) : Math.abs(value) / largest;
  return (
    <div class="strip" ref={strip}>
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
        <TokenMark kind={state.locked ? 'asks locked' : 'asks'} box={boxes[row]} />
        <TokenMark kind="asked" box={boxes[column]} />
        <svg class="arcs" aria-hidden="true">
          {arcs.map((arc, i) => (
            // biome-ignore lint/a11y/noStaticElementInteractions: the matrix does the same by keys
            <path
              key={i}
              d={arc.path}
              class={arc.column === column ? 'chosen' : arc.value < 0 ? 'negative' : ''}
              stroke-width={1 + 5 * strength(arc.value)}
              stroke-opacity={0.25 + 0.75 * strength(arc.value)}
              onPointerEnter={() => {
                if (!store.state.locked) store.set({ focus: { row, column: arc.column } });
              }}
              onClick={() => store.set({ focus: { row, column: arc.column }, locked: true })}
            >
              <title>{`${formatValue(view?.show ?? 'weights', arc.value)}: ${row} “${tokens[row]}” asks ${arc.column} “${tokens[arc.column]}”`}</title>
            </path>
          ))}
        </svg>
      </div>
    </div>
  );
}

/** Over the tokens, so that a strip of a thousand of them isn't painted again. @param {{ kind: string, box: Box & { width: number } | undefined }} props */
function TokenMark({ kind, box }) {
  if (!box) return null;
  const { x, top, bottom, width } = box;
  const style = { width: `${width}px`, height: `${bottom - top}px`, translate: `${x - width / 2}px ${top}px` };
  return <div class={`token-mark ${kind}`} style={style} />;
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

/** Scrolls the strip, and the strip alone, to a token; not under a pointer that is about to choose one. @param {HTMLElement | null} strip @param {Box | undefined} box @param {Room} room */
function keepInSight(strip, box, { width, height }) {
  if (!strip || !box || strip.matches(':hover')) return;
  strip.scrollTo({ left: box.x - width / 2, top: (box.top + box.bottom - height) / 2 });
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

/** @type {string[]} the same at each drawing */
const kNoTokens = [];

/** What there is room for. @typedef {{ width: number, height: number }} Room */

/** @type {{ boxes: (Box & { width: number })[], room: Room }} */
const kNowhere = { boxes: [], room: { width: 0, height: 0 } };

/** Where the tokens are. @param {HTMLElement} strip @param {HTMLElement | null} list */
function placesIn(strip, list) {
  const boxes = [...(list?.children ?? [])].map((item) => {
    const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = /** @type {HTMLElement} */ (item);
    const [x, bottom] = [offsetLeft + offsetWidth / 2, offsetTop + offsetHeight];
    return { x, top: offsetTop, bottom, width: offsetWidth };
  });
  return { boxes, room: { width: strip.clientWidth, height: strip.clientHeight } };
}
