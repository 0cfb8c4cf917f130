// The matrix in focus, with labels: the pointer and the keys move the cell that every view speaks of, and the part of the
// matrix that is in sight.
import { largest } from '../engine/matrix.js';
import { scaleFor } from '../scale.js';
import { element } from './element.js';
import { drawMap, drawMark } from './heat-map.js';
import { cellAt, following, layOut, partOf, zoomed } from './map-layout.js';
import { themeColors } from './theme-colors.js';
import { noteTime } from './thumbnail.js';
import { formatValue, viewName } from './words.js';

/** @import { Shown, ShownStore } from '../shown.js' */
/** @import { Matrix } from '../types.js' */
/** @import { Cell, State, Store } from '../state.js' */
/** @import { Layout } from './map-layout.js' */

const kDrag = 4; // pixels that a click may slip
const kStep = 1.5; // zoom of a key or of a notch of the wheel

/**
 * What the upper end of the scale stands for, row by row.
 * @param {State} state @param {Matrix} matrix @returns {(row: number) => number}
 */
export function highestOf({ range }, { data, from, columns, extreme }, show = 'weights') {
  if (show !== 'weights') return () => extreme;
  if (range === 'unit') return () => 1;
  /** @type {Map<number, number>} */
  const known = new Map();
  return (row) => {
    let most = known.get(row);
    if (most === undefined) {
      most = largest(data.subarray((row - from) * columns, (row - from + 1) * columns));
      known.set(row, most);
    }
    return most;
  };
}

/** @param {HTMLElement} container @param {Store} store @param {ShownStore} shown */
export function createFocusMap(container, store, shown) {
  const base = element('canvas', { 'aria-hidden': 'true' });
  const marks = element('canvas', {
    tabIndex: 0,
    role: 'application',
    'aria-roledescription': 'heat map',
    'aria-label': 'Attention weights',
    'aria-describedby': 'readout',
  });
  container.append(base, marks);
  /** @type {Layout | null} */
  let layout = null;
  let width = -1;
  const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));

  function draw() {
    const { run, matrix, view } = shown.state;
    container.hidden = !matrix;
    if (!run || !matrix || !view) return;
    const { zoom } = store.state;
    const start = performance.now();
    width = container.clientWidth;
    layout = layOut(run.tokens, partOf(matrix, zoom), width, ruler);
    drawMap(base, layout, {
      ...{ matrix, scale: scaleFor(view.show), highest: highestOf(store.state, matrix, view.show) },
      format: (value) => (view.show === 'weights' ? value.toFixed(2) : formatValue(view.show, value).slice(0, -1)),
      colors: themeColors(),
    });
    noteTime('draw matrix', start);
    // For whoever points at a cell from outside.
    Object.assign(marks.dataset, { cell: layout.cell, high: layout.high, part: JSON.stringify(layout.part) });
    marks.classList.toggle('zoomed', zoom !== null);
    const size = `${matrix.columns - matrix.from} by ${matrix.columns} tokens`;
    const name = view.combine === 'one' ? `head ${viewName(view, run)}` : viewName(view, run);
    marks.setAttribute('aria-label', `Attention ${view.show} of ${name}, ${size}`);
    mark();
  }

  function mark() {
    if (!layout || !shown.state.matrix) return;
    const { focus, locked } = store.state;
    drawMark(marks, layout, { ...focus, locked, colors: themeColors() });
  }

  connectPointer(marks, store, () => layout);
  connectKeys(marks, store, shown, () => layout);
  const ends = [
    shown.subscribe((/** @type {Shown} */ _, changed) => {
      if (changed.has('matrix')) setTimeout(draw); // the other views draw in this task
    }),
    store.subscribe((_, changed) => {
      if (changed.has('zoom') || changed.has('range')) draw();
      else if (changed.has('focus') || changed.has('locked')) mark();
    }),
  ];
  // The height follows from what has been drawn.
  const observer = new ResizeObserver(() => {
    if (container.clientWidth !== width) draw();
  });
  observer.observe(container);
  return {
    draw,
    end() {
      observer.disconnect();
      for (const end of ends) end();
    },
  };
}

/** @param {HTMLCanvasElement} canvas @param {Store} store @param {() => Layout | null} getLayout */
function connectPointer(canvas, store, getLayout) {
  /** Fingers or buttons that are down, and where. @type {Map<number, { x: number, y: number }>} */
  const down = new Map();
  /** @type {{ x: number, y: number, zoom: [number, number, number] } | null} where a drag began */
  let drag = null;
  let hasMoved = false;
  const cellOf = (/** @type {MouseEvent} */ event) => {
    const layout = getLayout();
    return layout && cellAt(layout, event.offsetX, event.offsetY);
  };

  canvas.addEventListener('pointerdown', (event) => {
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    hasMoved = false;
    const { zoom } = store.state;
    drag = zoom && down.size === 1 ? { x: event.offsetX, y: event.offsetY, zoom } : null;
    if (zoom || down.size > 1) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const before = down.get(event.pointerId);
    if (before && down.size === 2) pinch(event, before);
    else if (drag) pan(event, drag);
    else preview(cellOf(event));
    if (before) down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  });
  for (const name of /** @type {const} */ (['pointerup', 'pointercancel'])) {
    canvas.addEventListener(name, (event) => {
      down.delete(event.pointerId);
      drag = null;
    });
  }

  /** @param {Cell | null} cell */
  function preview(cell) {
    if (cell && !store.state.locked && !sameCell(cell, store.state.focus)) store.set({ focus: cell });
  }

  /** @param {MouseEvent} event @param {{ x: number, y: number, zoom: [number, number, number] }} start */
  function pan(event, { x, y, zoom: [row, column, span] }) {
    const layout = getLayout();
    if (!layout || (!hasMoved && Math.hypot(event.offsetX - x, event.offsetY - y) < kDrag)) return;
    hasMoved = true;
    const last = layout.labels.length - 1;
    const moved = (/** @type {number} */ at, /** @type {number} */ by) =>
      Math.max(0, Math.min(last, at + Math.round(by)));
    const zoom = [
      moved(row, (y - event.offsetY) / layout.high),
      moved(column, (x - event.offsetX) / layout.cell),
      span,
    ];
    store.set({ zoom: /** @type {[number, number, number]} */ (zoom) });
  }

  /** @param {PointerEvent} event @param {{ x: number, y: number }} before */
  function pinch(event, before) {
    hasMoved = true;
    const layout = getLayout();
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    if (!layout || !other) return;
    const factor =
      Math.hypot(event.offsetX - other.x, event.offsetY - other.y) /
      Math.max(1, Math.hypot(before.x - other.x, before.y - other.y));
    const middle = cellAt(layout, (event.offsetX + other.x) / 2, (event.offsetY + other.y) / 2);
    if (middle && Math.abs(factor - 1) > 0.02)
      store.set({ zoom: zoomed(layout.part, layout.labels.length, middle, factor) });
  }

  canvas.addEventListener('click', (event) => {
    const cell = cellOf(event);
    if (!cell || hasMoved) return;
    const again = store.state.locked && sameCell(cell, store.state.focus);
    store.set({ focus: cell, locked: !again });
  });
  canvas.addEventListener(
    'wheel',
    (event) => {
      const layout = getLayout();
      const cell = cellOf(event);
      if (!layout || !cell || !(event.ctrlKey || event.metaKey)) return; // the page scrolls by itself
      event.preventDefault();
      store.set({ zoom: zoomed(layout.part, layout.labels.length, cell, event.deltaY < 0 ? kStep : 1 / kStep) });
    },
    { passive: false },
  );
}

/** @param {HTMLCanvasElement} canvas @param {Store} store @param {ShownStore} shown @param {() => Layout | null} getLayout */
function connectKeys(canvas, store, shown, getLayout) {
  canvas.addEventListener('keydown', (event) => {
    const layout = getLayout();
    if (!layout || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = afterKey(event.key, store.state, shown.state.matrix?.from ?? 0, layout);
    if (!next) return;
    event.preventDefault();
    const { zoom } = store.state;
    const isMoved = next.focus && zoom && !('zoom' in next);
    store.set({ ...next, ...(isMoved && next.focus && { zoom: following(zoom, layout.part, next.focus) }) });
  });
}

/**
 * What a key changes, or null where it means nothing here.
 * @param {string} key @param {State} state @param {number} first row @param {Layout} layout
 * @returns {Partial<State> | null}
 */
function afterKey(key, { focus, locked }, first, { part, labels }) {
  const { row, column } = focus;
  const last = labels.length - 1;
  const cell = (/** @type {number} */ r, /** @type {number} */ c) => ({
    focus: { row: Math.max(first, Math.min(last, r)), column: Math.max(0, Math.min(last, c)) },
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
    case '+':
      return { zoom: zoomed(part, labels.length, focus, kStep) };
    case '-':
      return { zoom: zoomed(part, labels.length, focus, 1 / kStep) };
    case '0':
      return { zoom: null };
    default:
      return null;
  }
}

/** @param {Cell} a @param {Cell} b */
const sameCell = (a, b) => a.row === b.row && a.column === b.column;
