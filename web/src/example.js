// What is painted before anything has loaded: the default text, computed when the page was built.
import stored from '../model/example.json' with { type: 'json' };
import { matrixOf, thumbnailsOf } from './engine/matrix.js';
import { kNothingShown, thumbnailPixels, viewOf } from './shown.js';
import { hashFromSettings, kDefaults, kSettings } from './state.js';

/** @import { Source } from './engine/matrix.js' */
/** @import { Shown } from './shown.js' */
/** @import { State } from './state.js' */
/** @import { HeadName, HeadScores, Matrix, MatrixView, Run } from './types.js' */

/** Weights are stored as whole numbers, the lower triangles row by row. */
const kScale = 10000;

/** What may differ from the defaults without a kernel. @type {ReadonlySet<string>} */
const kViewsOnly = new Set([
  'at',
  'combine',
  'chosen',
  'range',
  'hideFirst',
  'mass',
  'arcs',
  'rows',
  'add',
  'zoom',
  'writing',
]);

export const storedScores = /** @type {HeadScores} */ (stored.scores);

/** Whether the stored example is what a state asks for. @param {State} state */
export function isStored(state) {
  const others = kSettings.filter((name) => !kViewsOnly.has(name));
  const rest = Object.fromEntries(others.map((name) => [name, state[name]]));
  return state.combine !== 'rollout' && hashFromSettings({ ...kDefaults, ...rest }) === '';
}

const { tokens, ids, info } = stored;
const kRules = Array.from({ length: info.layers }, () => ({ causal: true, left: -1, right: -1 }));

/** @type {Run} */
export const storedRun = {
  ...{ tokens, ids, prompt: tokens.length, total: tokens.length, layers: info.layers, heads: info.heads },
  ...{ rules: kRules, causal: true, changed: false, milliseconds: 0 },
};

/** @param {State} state whose head and cell exist in the run @returns {Shown} */
export function storedExample(state) {
  const source = sourceOf();
  const view = viewOf(state, storedRun);
  return {
    ...kNothingShown,
    model: /** @type {Shown['model']} */ (/** @type {unknown} */ (info)),
    ...{ run: storedRun, view, scores: storedScores, candidates: stored.candidates, isStored: true },
    nextRow: tokens.length - 1,
    matrix: matrixOf(view, source, null),
    thumbnails: kRules.map((_, layer) => thumbnailsOf(source, layer, thumbnailPixels(), state.hideFirst)),
  };
}

/** What the stored example has of a view; null where it takes a kernel. @param {MatrixView} view @returns {Matrix | null} */
export function storedMatrix(view) {
  return view.show === 'weights' && view.combine !== 'rollout' ? matrixOf(view, sourceOf(), null) : null;
}

/** @returns {Source} */
function sourceOf() {
  const T = tokens.length;
  const { layers, heads } = info;
  const triangle = (T * (T + 1)) / 2;
  const never = () => {
    throw new Error('the stored example has weights alone');
  };
  /** @param {HeadName} head @param {number} from */
  const weights = ([layer, head], from) => {
    const data = new Float32Array(T * T);
    let next = (layer * heads + head) * triangle;
    for (let row = 0; row < T; row++) {
      for (let column = 0; column <= row; column++) data[row * T + column] = stored.weights[next++] / kScale;
    }
    return data.subarray(from * T);
  };
  return { T, layers, heads, rules: kRules, weights, scores: never, timesTransposed: never };
}
