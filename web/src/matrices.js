// Matrices of the run that is shown, for whoever comes back to one of them: a look at another head and away again.

/** @import { Matrix, MatrixView, Run } from './types.js' */

/** Kept together; the oldest go first. */
const kMostNumbers = 8e6;

/** @param {MatrixView} view */
const keyOf = ({ combine, of, show, hideFirst, mass, from }) =>
  JSON.stringify([combine, of, show, hideFirst, mass, from]);

/** @param {MatrixView} a @param {MatrixView} b */
export const sameView = (a, b) => keyOf(a) === keyOf(b);

/** @param {(view: MatrixView) => Promise<Matrix | null>} ask of the last run */
export function createMatrices(ask) {
  /** @type {Run | null} */
  let current = null;
  /** @type {Map<string, Matrix>} */
  const kept = new Map();
  let numbers = 0;

  /** @param {string} key @param {Matrix} matrix */
  function keep(key, matrix) {
    kept.set(key, matrix);
    numbers += matrix.data.length;
    for (const [oldest, { data }] of kept) {
      if (numbers <= kMostNumbers || oldest === key) break;
      kept.delete(oldest);
      numbers -= data.length;
    }
  }

  /** @param {Run} run @param {MatrixView} view @returns {Matrix | null} */
  const known = (run, view) => (run === current ? (kept.get(keyOf(view)) ?? null) : null);

  return {
    known,
    /** @param {Run} run the last one @param {MatrixView} view @returns {Promise<Matrix | null>} */
    async of(run, view) {
      if (run !== current) {
        current = run;
        kept.clear();
        numbers = 0;
      }
      const matrix = known(run, view) ?? (await ask(view));
      if (matrix && run === current && !kept.has(keyOf(view))) keep(keyOf(view), matrix);
      return matrix;
    },
  };
}
