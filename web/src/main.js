// The page: settings → one run of the kernels → views. Nothing below knows anything above it.
import { load } from 'attention-wasm';
import { createModel } from './model.js';
import { createStore, hashFromSettings, settingsFromHash } from './state.js';
import { splitText } from './tokens.js';
import { createControls, createThemeSwitch, createTokenStrip } from './views/controls.js';
import { byId, element } from './views/element.js';
import { createFacts } from './views/facts.js';
import { createHeadMaps } from './views/head-maps.js';
import { createLegend } from './views/legend.js';
import { createRowTable } from './views/row-table.js';

/** @typedef {import('./state.js').State} State */

/** @type {(keyof State)[]} */
const kRerun = ['text', 'heads', 'causal', 'rope', 'seed'];

const kPause = 200;

async function start() {
  /** @type {import('./state.js').Store} */
  const store = createStore({
    ...settingsFromHash(location.hash),
    focus: { head: 0, row: 4, column: 6 },
    locked: false,
  });
  const controls = createControls(store);
  const strip = createTokenStrip();
  const legend = createLegend();
  const maps = createHeadMaps(store);
  const rowTable = createRowTable(store);
  createThemeSwitch(maps.drawAll);
  controls.show(store.state);
  strip.show(splitText(store.state.text).tokens, splitText(store.state.text).total);

  const attention = await load();
  const facts = createFacts(attention.info);
  const model = createModel(attention);
  let run = model.run(splitText(store.state.text).tokens, store.state);
  let highest = 0;

  function compute() {
    const { tokens, total } = splitText(store.state.text);
    run = model.run(tokens, store.state);
    highest = run.weights.data.reduce((most, value) => Math.max(most, value), 0);
    controls.show(store.state);
    strip.show(tokens, total);
    store.set({ focus: clampFocus(store.state, tokens.length) });
    maps.show(run, highest);
    facts.show(store.state, run);
    showFocus();
  }

  function showFocus() {
    maps.drawMarks();
    strip.mark(store.state);
    legend.show(store.state, run, highest);
    rowTable.show(store.state, run);
  }

  store.subscribe((state, changed) => {
    if (!kRerun.some((name) => changed.has(name))) return;
    compute();
    writeAddress(state);
  });
  store.subscribe((_, changed) => {
    if (changed.has('focus') || changed.has('locked')) showFocus();
  });
  window.addEventListener('hashchange', () => store.set(settingsFromHash(location.hash)));
  compute();

  return {
    /** What the reader has chosen, and the cell in focus. */
    get state() {
      return store.state;
    },
    get tokens() {
      return run.tokens;
    },
    /** [1, H, T, T], as drawn. */
    get weights() {
      return run.weights;
    },
    get output() {
      return run.output;
    },
    /** { x, stateDict, config }: all that is needed to compute the same elsewhere. */
    get inputs() {
      return run.inputs;
    },
    get milliseconds() {
      return run.milliseconds;
    },
    /** What came up: version, build, threads, and why not better. */
    info: attention.info,
  };
}

/** Once the reader pauses: browsers limit how often the address may change. */
const writeAddress = afterPause(kPause, (/** @type {State} */ state) => {
  history.replaceState(null, '', `${location.pathname}${location.search}${hashFromSettings(state)}`);
});

/**
 * @template T
 * @param {number} milliseconds @param {(value: T) => void} action with the last value
 * @returns {(value: T) => void}
 */
function afterPause(milliseconds, action) {
  let timer = 0;
  return (value) => {
    clearTimeout(timer);
    timer = window.setTimeout(action, milliseconds, value);
  };
}

/** The same cell as far as it still exists. @param {State} state @param {number} count of tokens */
function clampFocus({ focus, heads }, count) {
  const last = Math.max(0, count - 1);
  const next = {
    head: Math.min(focus.head, heads - 1),
    row: Math.min(focus.row, last),
    column: Math.min(focus.column, last),
  };
  const same = next.head === focus.head && next.row === focus.row && next.column === focus.column;
  return same ? focus : next;
}

try {
  // Read by the tests, and by anyone with a console: the state behind the picture.
  Object.assign(window, { attentionPage: await start() });
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  byId('maps').replaceChildren(
    element('p', { className: 'failure', role: 'alert' }, `The kernels did not start: ${message}`),
  );
  throw error;
}
