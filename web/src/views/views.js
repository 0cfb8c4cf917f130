// All views of the run, the model and the cell in focus.
import { createTokenStrip } from './controls.js';
import { createFacts } from './facts.js';
import { createFocusMap } from './focus-map.js';
import { showHeadFacts } from './head-facts.js';
import { createHeadGrid } from './head-grid.js';
import { createLegend } from './legend.js';
import { createNextTokens } from './next-tokens.js';
import { createProgress } from './progress.js';
import { createRowTable } from './row-table.js';
import { createSwitches } from './switches.js';
import { createTakeAway } from './take-away.js';

/** @import { BuildInfo, Candidate, HeadScores, ModelInfo, Run } from '../types.js' */
/** @import { HeadName } from '../types.js' */
/** @import { State, Store } from '../state.js' */
/** @import { Effects } from './switches.js' */

/** @param {Store} store */
export function createViews(store) {
  const facts = createFacts();
  const grid = createHeadGrid(store);
  const legend = createLegend();
  const map = createFocusMap(store);
  const next = createNextTokens();
  const progress = createProgress();
  const rowTable = createRowTable(store);
  const strip = createTokenStrip();
  const switches = createSwitches(store);
  /** @type {Run | null} */
  let run = null;
  let highest = 0;
  /** @type {HeadScores | null} */
  let scores = null;
  createTakeAway(store, () => run);

  function showFocus() {
    if (!run) return;
    map.mark();
    strip.mark(store.state);
    legend.show(store.state, run, highest);
    rowTable.show(store.state, run);
  }

  function showLabels() {
    if (!run) return;
    grid.mark(store.state, scores);
    showHeadFacts(store.state, scores);
    switches.show(store.state, scores);
  }

  /** @param {Run} shown @param {ModelInfo | null} model */
  function showRun(shown, model) {
    run = shown;
    highest = run.weights.reduce((most, value) => Math.max(most, value), 0);
    store.set(existing(store.state, run));
    strip.show(run, model);
    grid.show(run, highest);
    map.show(run, highest);
    showLabels();
    showFocus();
  }

  return {
    /** @param {{ run: Run, candidates: Candidate[], scores: HeadScores, info: ModelInfo }} example */
    showStored(example) {
      scores = example.scores;
      showRun(example.run, example.info);
      next.show(store.state, example.run, example.candidates);
      facts.showStored();
    },
    /** @param {BuildInfo} build @param {ModelInfo | null} model @param {Run} shown */
    showRun(build, model, shown) {
      if (!model) scores = null;
      facts.showBuild(build);
      facts.show(build, model, shown);
      showRun(shown, model);
    },
    /** @param {readonly Candidate[]} candidates */
    showNext(candidates) {
      if (run) next.show(store.state, run, candidates);
    },
    /** @param {HeadScores | null} measured */
    showScores(measured) {
      if (measured === scores) return;
      scores = measured;
      showLabels();
    },
    /** @param {Effects} effects */
    showEffects(effects) {
      switches.showEffects(effects, store.state.off.length > 0);
    },
    /** @param {Set<keyof State>} changed of what needs no run */
    update(changed) {
      if (changed.has('at')) {
        showLabels();
        map.draw();
      }
      showFocus();
    },
    draw() {
      grid.draw();
      map.draw();
    },
    progress,
  };
}

/** Head and cell as far as they exist in a run. @param {State} state @param {Run} run @returns {Partial<State>} */
function existing({ at, focus }, { layers, heads, tokens, causal }) {
  const last = Math.max(0, tokens.length - 1);
  const row = Math.min(focus.row, last);
  const column = Math.min(focus.column, causal ? row : last);
  /** @type {HeadName} */
  const head = [Math.min(at[0], layers - 1), Math.min(at[1], heads - 1)];
  return {
    ...(head[0] !== at[0] || head[1] !== at[1] ? { at: head } : {}),
    ...(row !== focus.row || column !== focus.column ? { focus: { row, column } } : {}),
  };
}
