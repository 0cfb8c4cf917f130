// All heads of all layers as thumbnails: one is chosen, or several are shown as one.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { roleOf } from '../roles.js';
import { allHeads, headName, orderedHeads, sameHead } from '../state.js';
import { Segments } from './parts.jsx';
import { paintStamp } from './thumbnail.js';
import { useStore } from './use-store.js';

/** @import { HeadName } from '../types.js' */
/** @import { State } from '../state.js' */
/** @import { App } from './use-store.js' */

const kMove = /** @type {Record<string, readonly [number, number]>} */ ({
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
});
const kWrapAt = 4;

/** @type {readonly { value: State['combine'], label: string }[]} */
const kCombine = [
  { value: 'one', label: 'One head' },
  { value: 'mean', label: 'Mean' },
  { value: 'max', label: 'Maximum' },
  { value: 'rollout', label: 'Rollout' },
];

/** @param {{ app: App }} props */
export function HeadGrid({ app }) {
  const { store, shown } = app;
  const state = useStore(store, 'at', 'off', 'combine', 'chosen', 'range');
  const { run, thumbnails, scores } = useStore(shown, 'run', 'thumbnails', 'scores');
  const grid = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [stop, setStop] = useState(/** @type {HeadName | null} */ (null)); // where the keys are
  useCellMarks(app, grid);
  if (!run) return null;
  const { layers, heads } = run;
  const isOne = state.combine === 'one';
  const isSeveral = state.combine === 'mean' || state.combine === 'max';
  const isShown = (/** @type {HeadName} */ head) =>
    isOne ? sameHead(head, state.at) : state.combine === 'rollout' || isIn(state.chosen, head);

  /** @param {HeadName} head */
  function choose(head) {
    if (!isSeveral) return store.set({ at: head, combine: 'one', peek: null });
    // From all to this one alone; then one more, or one less.
    const others = state.chosen.filter((each) => !sameHead(each, head));
    const isMore = others.length === state.chosen.length;
    store.set({ at: head, chosen: isMore ? orderedHeads([...others, head]) : others, peek: null });
  }

  /** Shows a head in passing; null: what was chosen. @param {HeadName | null} head */
  function preview(head) {
    const { at, combine, peek } = store.state;
    const next = head && combine === 'one' && sameHead(head, at) ? null : head;
    if (!next || !peek || !sameHead(next, peek)) store.set({ peek: next });
  }

  /** @param {EventTarget | null} target @returns {HeadName | null} */
  const headAt = (target) => {
    const index = [...(grid.current?.children ?? [])].findIndex((node) => node.contains(/** @type {Node} */ (target)));
    return index < 0 ? null : [Math.floor(index / heads), index % heads];
  };
  /** @param {HeadName} head */
  const focusOn = ([layer, head]) =>
    /** @type {HTMLElement | undefined} */ (grid.current?.children[layer * heads + head])?.focus();
  const handlers = {
    onPointerOver(/** @type {PointerEvent} */ event) {
      const [head, former] = [headAt(event.target), headAt(event.relatedTarget)];
      if (head && event.pointerType !== 'touch' && !(former && sameHead(head, former))) preview(head);
    },
    /** Back to the head that has the keys, if any; else to what was chosen. */
    onPointerLeave: () => preview(grid.current?.querySelector(':focus-visible') ? stop : null),
    onFocusIn(/** @type {FocusEvent} */ event) {
      const head = headAt(event.target);
      setStop(head);
      // A click has the focus, too, but has chosen already.
      if (head && /** @type {Element} */ (event.target).matches(':focus-visible')) preview(head);
    },
    onFocusOut(/** @type {FocusEvent} */ event) {
      if (grid.current?.contains(/** @type {Node | null} */ (event.relatedTarget))) return;
      setStop(null);
      preview(null);
    },
    onKeyDown(/** @type {KeyboardEvent} */ event) {
      const head = headAt(event.target);
      const by = kMove[event.key];
      if (!head || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === 'Escape') focusOn(store.state.at); // what was in passing ends with the page's own Escape
      if (!by) return;
      event.preventDefault();
      const next = /** @type {const} */ ([head[0] + by[0], head[1] + by[1]]);
      if (next[0] >= 0 && next[0] < layers && next[1] >= 0 && next[1] < heads) focusOn(next);
    },
  };

  return (
    <div class="overview">
      <Segments
        legend="Heads shown"
        name="combine"
        options={kCombine}
        value={state.combine}
        onChange={(combine) => store.set({ combine })}
      />
      <p class="note" id="combine-note">
        {noteOf(state)}
        {isSeveral && state.chosen.length > 0 && (
          <button type="button" class="link" onClick={() => store.set({ chosen: [] })}>
            all heads
          </button>
        )}
      </p>
      <div
        class="head-grid"
        id="head-grid"
        ref={grid}
        {...{ role: isSeveral ? 'group' : 'radiogroup', 'aria-label': 'Heads, a row for each layer' }}
        style={{ '--columns': layers > 1 ? heads : Math.min(heads, kWrapAt) }}
        {...handlers}
      >
        {allHeads(run).map((head) => (
          <Thumbnail
            key={head.join('.')}
            head={head}
            part={thumbnails[head[0]] ?? null}
            byRow={state.range === 'row'}
            role={isSeveral ? 'checkbox' : 'radio'}
            isChecked={isShown(head)}
            isStop={sameHead(head, stop ?? state.at)}
            isOff={isIn(state.off, head, false)}
            label={isIn(state.off, head, false) ? 'off' : scores ? roleOf(scores, head) : ''}
            onChoose={choose}
          />
        ))}
      </div>
    </div>
  );
}

/** Where the cell in focus is in a thumbnail, for its style alone. @param {App} app @param {{ current: HTMLElement | null }} grid */
function useCellMarks({ store, shown }, grid) {
  const mark = () => {
    const T = shown.state.run?.tokens.length ?? 1;
    const { row, column } = store.state.focus;
    grid.current?.style.setProperty('--row', ((row + 0.5) / T).toFixed(3));
    grid.current?.style.setProperty('--column', ((column + 0.5) / T).toFixed(3));
  };
  useLayoutEffect(mark);
  useLayoutEffect(
    () =>
      store.subscribe((_, changed) => {
        if (changed.has('focus')) mark();
      }),
    [],
  );
}

/** @param {readonly HeadName[]} list @param {HeadName} head @param {boolean} [ifEmpty] */
const isIn = (list, head, ifEmpty = true) => (list.length === 0 ? ifEmpty : list.some((each) => sameHead(each, head)));

/** @param {State} state */
function noteOf({ combine, chosen }) {
  if (combine === 'one') return 'Layers go down, heads across.';
  if (combine === 'rollout') return 'All heads of all layers: ½ mean + ½ identity, layer upon layer.';
  const which = chosen.length === 0 ? 'all heads; choose some below. ' : `${chosen.map(headName).join(', ')}; `;
  return `${combine === 'mean' ? 'Mean' : 'Maximum'} of ${which}`;
}

/**
 * @param {{ head: HeadName, part: import('../types.js').Thumbnails | null, byRow: boolean, role: 'radio' | 'checkbox',
 *   isChecked: boolean, isStop: boolean, isOff: boolean, label: string, onChoose: (head: HeadName) => void }} props
 */
function Thumbnail({ head, part, byRow, role, isChecked, isStop, isOff, label, onChoose }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  useLayoutEffect(() => {
    if (!canvas.current || !part) return;
    const { side, data } = part;
    const tiles = data.subarray(head[1] * side * side, (head[1] + 1) * side * side);
    paintStamp({ canvas: canvas.current, tiles, side, byRow });
  }, [part, byRow]);
  return (
    <button
      type="button"
      class={`thumbnail${isOff ? ' off' : ''}`}
      {...{ role, 'aria-checked': isChecked }}
      tabIndex={isStop ? 0 : -1}
      onClick={() => onChoose(head)}
    >
      <canvas ref={canvas} />
      <b>{headName(head)}</b>
      <span class="role">{label}</span>
    </button>
  );
}
