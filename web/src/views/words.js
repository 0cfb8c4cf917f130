// What is shown, in words: names for titles, for files and for those who listen.
import { hiddenBy } from '../engine/rules.js';
import { headName } from '../state.js';
import { formatChange, formatWeight } from './format.js';

/** @import { Matrix, MatrixView, Run } from '../types.js' */

/** What the matrix is of. @param {MatrixView} view @param {Run} run */
export function viewName({ combine, of }, { layers, heads }) {
  if (combine === 'one') return headName(of[0]);
  if (combine === 'rollout') return `Rollout of ${layers} layers`;
  const which = of.length === layers * heads ? `all ${of.length} heads` : of.map(headName).join(', ');
  return `${combine === 'mean' ? 'Mean' : 'Maximum'} of ${which}`;
}

/** For the name of a file. @param {MatrixView} view @param {Run} run */
export function fileName({ combine, of, show }, { layers, heads }) {
  const names = of.map(([layer, head]) => `L${layer}H${head}`).join('-');
  const what =
    combine === 'one' ? names : combine === 'rollout' || of.length === layers * heads ? combine : `${combine}-${names}`;
  return `attention-${what}${show === 'weights' ? '' : `-${show}`}`;
}

/** What a number of the matrix is called. @type {Readonly<Record<MatrixView['show'], string>>} */
export const kQuantities = { weights: 'Weight', scores: 'Score', change: 'Change' };

/** @param {MatrixView['show']} show @param {number} value */
export const formatValue = (show, value) => (show === 'weights' ? formatWeight(value) : formatChange(value));

/** The number of a cell; NaN where there is none. @param {Matrix} matrix @param {number} row @param {number} column */
export function valueAt({ data, from, columns }, row, column) {
  const value = row < from ? undefined : data[(row - from) * columns + column];
  return value ?? Number.NaN;
}

/**
 * Why a cell has no number.
 * @param {Matrix} matrix @param {MatrixView} view @param {number} row @param {number} column
 * @returns {{ short: string, long: string }}
 */
export function whyEmpty({ rule }, { hideFirst, mass, show }, row, column) {
  const name = hiddenBy(rule, row, column);
  if (name) return { short: 'hidden', long: `hidden by ${name}` };
  if (show === 'weights' && hideFirst && column === 0)
    return { short: 'left out', long: 'left out as the first token' };
  return { short: 'below', long: `not among the ${Math.round(100 * mass)} % that are shown` };
}
