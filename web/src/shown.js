// What the views show, in one object; and which matrix a state asks for.
import { allHeads, createStore } from './state.js';

/** @import { State } from './state.js' */
/** @import { BuildInfo, Candidate, Effect, HeadName, HeadScores, LensLayer, Matrix, MatrixView, ModelInfo, Progress, Run, Thumbnails } from './types.js' */

/**
 * What the views show. A run and its matrix change together.
 * @typedef {object} Shown
 * @property {BuildInfo | null} build
 * @property {ModelInfo | null} model null for the untrained layer
 * @property {Run | null} run
 * @property {Matrix | null} matrix null where there is no token
 * @property {MatrixView | null} view what the matrix is of
 * @property {(Thumbnails | null)[]} thumbnails by layer
 * @property {readonly Candidate[]} candidates
 * @property {readonly LensLayer[]} lens
 * @property {number} nextRow the row that candidates and lens are of
 * @property {HeadScores | null} scores
 * @property {{ before: Effect | null, after: Effect | null }} effects null where it is being measured
 * @property {Progress | null} progress
 * @property {string} failure
 * @property {string} gpuRefusal why the GPU doesn't compute, after it was chosen
 * @property {boolean} isStored the stored example, before anything is computed
 * @property {{ count: number, token: string } | null} writing tokens so far, and the last one
 */
/** @typedef {ReturnType<typeof createStore<Shown>>} ShownStore */

const kThumbnailSide = 64;
const kMostThumbnailPixels = 128;

export const kNothingShown = /** @type {Shown} */ ({
  ...{ build: null, model: null, run: null, matrix: null, view: null, thumbnails: [], candidates: [], lens: [] },
  ...{ nextRow: 0, scores: null, effects: { before: null, after: null }, progress: null, failure: '', gpuRefusal: '' },
  ...{ isStored: false, writing: null },
});

/** The matrix that a state asks for. @param {State} state @param {Pick<Run, 'layers' | 'heads' | 'prompt' | 'tokens' | 'changed'>} run @returns {MatrixView} */
export function viewOf(state, { layers, heads, prompt, tokens, changed }) {
  const { at, peek, chosen, show, hideFirst, mass, newOnly } = state;
  const isThere = (/** @type {HeadName} */ [layer, head]) => layer < layers && head < heads;
  const passing = peek && isThere(peek) ? peek : null;
  const combine = passing ? 'one' : state.combine;
  const some = chosen.filter(isThere);
  const all = some.length > 0 && combine !== 'rollout' ? some : allHeads({ layers, heads });
  const isMissing = (combine === 'rollout' && show === 'scores') || (show === 'change' && !changed);
  return {
    ...{ combine, hideFirst, mass },
    of: combine === 'one' ? [passing ?? at] : all,
    show: isMissing ? 'weights' : show,
    // While the first token is being written there is no new row yet: the one that it comes from is shown.
    from: newOnly ? Math.max(0, Math.min(prompt, tokens.length - 1)) : 0,
  };
}

export const thumbnailPixels = () =>
  Math.min(kMostThumbnailPixels, Math.round(kThumbnailSide * (devicePixelRatio || 1)));

/**
 * Head, cell and zoom as far as they exist in a run.
 * @param {State} state @param {Run} run @param {boolean} isWriting new rows are on their way @returns {Partial<State>}
 */
export function existing({ at, focus, newOnly, zoom, rows }, { layers, heads, tokens, causal, prompt }, isWriting) {
  const last = Math.max(0, tokens.length - 1);
  const first = newOnly ? Math.min(prompt, last) : 0;
  const row = Math.max(first, Math.min(focus.row, last));
  const column = Math.min(focus.column, causal ? row : last);
  /** @type {HeadName} */
  const head = [Math.min(at[0], layers - 1), Math.min(at[1], heads - 1)];
  return {
    ...(head[0] !== at[0] || head[1] !== at[1] ? { at: head } : {}),
    ...(row !== focus.row || column !== focus.column ? { focus: { row, column } } : {}),
    ...(newOnly && tokens.length <= prompt && !isWriting ? { newOnly: false } : {}),
    ...(zoom && Math.max(zoom[0], zoom[1]) > last ? { zoom: null } : {}),
    ...(rows.some((each) => each > last) ? { rows: rows.filter((each) => each <= last) } : {}),
  };
}
