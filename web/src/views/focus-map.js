// The matrix of the chosen head, with labels: the pointer and the keys move the cell that every view speaks of.
import { headName } from '../state.js';
import { byId, element } from './element.js';
import { cellAt, drawMap, drawMark, layOut } from './heat-map.js';
import { themeColors } from './theme-colors.js';

/** @import { Run } from '../types.js' */
/** @import { Cell, State, Store } from '../state.js' */

/** @param {Store} store */
export function createFocusMap(store) {
  const container = byId('map');
  const base = element('canvas', { 'aria-hidden': 'true' });
  const marks = element('canvas', {
    tabIndex: 0,
    role: 'application',
    'aria-roledescription': 'heat map',
    'aria-label': 'Attention weights',
    'aria-describedby': 'readout',
  });
  container.append(base, marks);
  /** @type {import('./heat-map.js').Layout | null} */
  let layout = null;
  /** @type {{ run: Run, highest: number } | null} */
  let shown = null;
  const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));

  function draw() {
    if (!shown) return;
    const { run, highest } = shown;
    const { tokens, causal } = run;
    layout = layOut(tokens, container.clientWidth, ruler);
    drawMap(base, layout, { weights: headWeights(run, store.state), highest, causal, colors: themeColors() });
    marks.dataset.cell = String(layout.cell); // side of a cell, for whoever points at one from outside
    const size = `${tokens.length} by ${tokens.length} tokens`;
    marks.setAttribute('aria-label', `Attention weights of head ${headName(store.state.at)}, ${size}`);
    mark();
  }

  function mark() {
    if (!shown || !layout) return;
    const { focus, locked } = store.state;
    drawMark(marks, layout, { ...focus, locked, colors: themeColors() });
  }

  connect(marks, store, () => layout);
  new ResizeObserver(draw).observe(container);
  return {
    /** @param {Run} run @param {number} highest */
    show(run, highest) {
      shown = { run, highest };
      draw();
    },
    draw,
    mark,
  };
}

/** [T, T] of the chosen head. @param {Run} run @param {State} state */
export function headWeights({ weights, heads, tokens }, { at: [layer, head] }) {
  const size = tokens.length ** 2;
  const index = layer * heads + head;
  return weights.subarray(index * size, (index + 1) * size);
}

/** @param {HTMLCanvasElement} canvas @param {Store} store @param {() => import('./heat-map.js').Layout | null} getLayout */
function connect(canvas, store, getLayout) {
  const cellOf = (/** @type {PointerEvent | MouseEvent} */ event) => {
    const layout = getLayout();
    return layout && cellAt(layout, event.offsetX, event.offsetY);
  };
  canvas.addEventListener('pointermove', (event) => {
    const cell = cellOf(event);
    if (cell && !store.state.locked && !sameCell(cell, store.state.focus)) store.set({ focus: cell });
  });
  canvas.addEventListener('click', (event) => {
    const cell = cellOf(event);
    if (!cell) return;
    const again = store.state.locked && sameCell(cell, store.state.focus);
    store.set({ focus: cell, locked: !again });
  });
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = afterKey(event.key, store.state, (getLayout()?.labels.length ?? 0) - 1);
    if (!next) return;
    event.preventDefault();
    store.set(next);
  });
}

/**
 * What a key changes, or null where it means nothing here.
 * @param {string} key @param {State} state @param {number} last index of the last token
 * @returns {Partial<State> | null}
 */
function afterKey(key, { focus: { row, column }, locked }, last) {
  const cell = (/** @type {number} */ r, /** @type {number} */ c) => ({
    focus: { row: Math.max(0, Math.min(last, r)), column: Math.max(0, Math.min(last, c)) },
  });
  switch (key) {
    case 'ArrowUp':
      return cell(row - 1, column);
    case 'ArrowDown':
      return cell(row + 1, column);
    case 'ArrowLeft':
      return cell(row, column - 1);
    case 'ArrowRight':
      return cell(row, column + 1);
    case 'Home':
      return cell(row, 0);
    case 'End':
      return cell(row, last);
    case 'Enter':
    case ' ':
      return { locked: !locked };
    default:
      return null;
  }
}

/** @param {Cell} a @param {Cell} b */
const sameCell = (a, b) => a.row === b.row && a.column === b.column;
