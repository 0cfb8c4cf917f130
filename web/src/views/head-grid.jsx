// All heads of all layers as thumbnails: one is chosen, or several are shown as one.
import { useLayoutEffect, useRef } from 'preact/hooks';
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
  if (!run) return null;
  const { layers, heads } = run;
  const isOne = state.combine === 'one';
  const isSeveral = state.combine === 'mean' || state.combine === 'max';
  const isShown = (/** @type {HeadName} */ head) =>
    isOne ? sameHead(head, state.at) : state.combine === 'rollout' || isIn(state.chosen, head);

  /** @param {HeadName} head */
  function choose(head) {
    if (!isSeveral) return store.set({ at: head, combine: 'one' });
    // From all to this one alone; then one more, or one less.
    const others = state.chosen.filter((each) => !sameHead(each, head));
    const isMore = others.length === state.chosen.length;
    store.set({ at: head, chosen: isMore ? orderedHeads([...others, head]) : others });
  }

  /** @param {KeyboardEvent} event @param {HeadName} head */
  function move(event, [layer, head]) {
    const by = kMove[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = /** @type {const} */ ([layer + by[0], head + by[1]]);
    if (next[0] < 0 || next[0] >= layers || next[1] < 0 || next[1] >= heads) return;
    store.set({ at: next });
    /** @type {HTMLElement | undefined} */ (grid.current?.children[next[0] * heads + next[1]])?.focus();
  }

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
      >
        {allHeads(run).map((head) => (
          <Thumbnail
            key={head.join('.')}
            head={head}
            part={thumbnails[head[0]] ?? null}
            byRow={state.range === 'row'}
            role={isSeveral ? 'checkbox' : 'radio'}
            isChecked={isShown(head)}
            isStop={sameHead(head, state.at)}
            isOff={isIn(state.off, head, false)}
            label={isIn(state.off, head, false) ? 'off' : scores ? roleOf(scores, head) : ''}
            onChoose={choose}
            onMove={move}
          />
        ))}
      </div>
    </div>
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
 *   isChecked: boolean, isStop: boolean, isOff: boolean, label: string, onChoose: (head: HeadName) => void,
 *   onMove: (event: KeyboardEvent, head: HeadName) => void }} props
 */
function Thumbnail({ head, part, byRow, role, isChecked, isStop, isOff, label, onChoose, onMove }) {
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
      onKeyDown={(event) => onMove(event, head)}
    >
      <canvas ref={canvas} />
      <b>{headName(head)}</b>
      <span class="role">{label}</span>
    </button>
  );
}
