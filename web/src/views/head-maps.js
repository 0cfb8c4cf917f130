// A map for each head, side by side. All of them mark the same cell, so that heads can be compared.
import { byId, element } from './element.js';
import { cellAt, drawMap, drawMark, layOut, readableWidth } from './heat-map.js';

/** @typedef {import('../state.js').Store} Store */
/** @typedef {import('../state.js').State} State */
/** @typedef {import('../model.js').Run} Run */
/** @typedef {{ figure: HTMLElement, base: HTMLCanvasElement, marks: HTMLCanvasElement, value: HTMLElement }} Map */

const kSmallestMap = 200;
const kLongTextMap = 300;
const kGap = 32;

/** @param {number} weight */
export const formatWeight = (weight) => weight.toFixed(3);

/** The weight of the cell in focus, or that the mask hides it. @param {number} weight @param {State} state */
const describe = (weight, { causal, focus }) => (causal && focus.column > focus.row ? 'hidden' : formatWeight(weight));

/** Colours of the style sheet, for the canvas. @returns {import('./heat-map.js').Colors} */
function themeColors() {
  const style = getComputedStyle(document.documentElement);
  const color = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: color('ink'),
    faint: color('ink-2'),
    line: color('hatch'),
    ground: color('ground'),
    accent: color('accent'),
  };
}

/** @param {Store} store */
export function createHeadMaps(store) {
  const container = byId('maps');
  /** @type {Map[]} */
  const maps = [];
  /** @type {import('./heat-map.js').Layout | null} */
  let layout = null;
  /** @type {{ run: Run, highest: number } | null} */
  let shown = null;
  const ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));

  /** @param {number} head */
  function createMap(head) {
    const base = element('canvas', { 'aria-hidden': 'true' });
    const marks = element('canvas', {
      tabIndex: 0,
      role: 'application',
      'aria-roledescription': 'heat map',
      'aria-describedby': 'readout',
    });
    const value = element('span', { className: 'number value' });
    const figure = element(
      'figure',
      { className: 'map' },
      element('figcaption', {}, element('b', {}, `H${head}`), value),
      element('div', { className: 'canvases' }, base, marks),
    );
    connect(marks, head, store, () => layout);
    container.append(figure);
    return { figure, base, marks, value };
  }

  function drawAll() {
    if (!shown) return;
    const { run, highest } = shown;
    const { causal } = store.state;
    const heads = run.weights.shape[1];
    const size = run.tokens.length ** 2;
    container.style.setProperty('--columns', String(columnsFor(run.tokens, heads, container.clientWidth, ruler)));
    while (maps.length > heads) maps.pop()?.figure.remove();
    while (maps.length < heads) maps.push(createMap(maps.length));
    layout = layOut(run.tokens, maps[0].figure.clientWidth, ruler);
    const colors = themeColors();
    maps.forEach(({ base, marks }, head) => {
      const weights = run.weights.data.subarray(head * size, (head + 1) * size);
      drawMap(base, /** @type {import('./heat-map.js').Layout} */ (layout), { weights, highest, causal, colors });
      marks.dataset.cell = String(layout?.cell); // side of a cell, for whoever points at one from outside
      marks.setAttribute('aria-label', `Weights of head H${head}, ${run.tokens.length} by ${run.tokens.length} tokens`);
    });
    drawMarks();
  }

  function drawMarks() {
    if (!shown || !layout) return;
    const { weights, tokens } = shown.run;
    const { focus, locked } = store.state;
    const { row, column, head: chosenHead } = focus;
    const count = tokens.length;
    const colors = themeColors();
    maps.forEach(({ figure, marks, value }, head) => {
      const chosen = head === chosenHead;
      drawMark(marks, /** @type {import('./heat-map.js').Layout} */ (layout), { row, column, chosen, locked, colors });
      figure.classList.toggle('chosen', chosen);
      value.textContent = count ? describe(weights.data[(head * count + row) * count + column], store.state) : '';
    });
  }

  new ResizeObserver(drawAll).observe(container);
  return {
    /** @param {Run} run @param {number} highest */
    show(run, highest) {
      shown = { run, highest };
      drawAll();
    },
    drawAll,
    drawMarks,
  };
}

/**
 * How many maps stand side by side: as many as have room for all their labels, in full rows. A long text has room for
 * some labels only, and then for smaller maps.
 * @param {string[]} tokens @param {number} heads @param {number} room @param {CanvasRenderingContext2D} context
 */
function columnsFor(tokens, heads, room, context) {
  const wanted = Math.max(kSmallestMap, readableWidth(tokens, context));
  const width = wanted <= room ? wanted : kLongTextMap;
  let columns = heads;
  while (columns > 1 && columns * (width + kGap) - kGap > room) columns /= 2;
  return columns;
}

/**
 * Pointer and keys of one map.
 * @param {HTMLCanvasElement} canvas @param {number} head @param {Store} store
 * @param {() => import('./heat-map.js').Layout | null} getLayout
 */
function connect(canvas, head, store, getLayout) {
  /** @param {PointerEvent | MouseEvent} event */
  const cellOf = (event) => {
    const layout = getLayout();
    const cell = layout && cellAt(layout, event.offsetX, event.offsetY);
    return cell && { head, ...cell };
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
  canvas.addEventListener('focus', () => {
    if (canvas.matches(':focus-visible') && !store.state.locked) store.set({ focus: { ...store.state.focus, head } });
  });
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = afterKey(event.key, head, store.state, (getLayout()?.labels.length ?? 0) - 1);
    if (!next) return;
    event.preventDefault();
    store.set(next);
  });
}

/**
 * What a key changes, or null where it means nothing here.
 * @param {string} key @param {number} head @param {State} state @param {number} last index of the last token
 * @returns {Partial<State> | null}
 */
function afterKey(key, head, { focus, locked }, last) {
  const { row, column } = focus;
  const cell = (/** @type {number} */ r, /** @type {number} */ c) => ({
    focus: { head, row: Math.max(0, Math.min(last, r)), column: Math.max(0, Math.min(last, c)) },
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
      return { ...cell(row, column), locked: !(locked && focus.head === head) };
    default:
      return null;
  }
}

/** @param {import('../state.js').Cell} a @param {import('../state.js').Cell} b */
function sameCell(a, b) {
  return a.head === b.head && a.row === b.row && a.column === b.column;
}
