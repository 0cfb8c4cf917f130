// What is shown, as numbers: tables for CSV, and JSON with everything that is needed to read it.
import { allHeads } from '../state.js';
import { addedRows } from './row-panel.jsx';
import { fileName, viewName } from './words.js';

/** @import { Shown } from '../shown.js' */
/** @import { Session } from '../session.js' */
/** @import { State } from '../state.js' */
/** @import { Matrix, MatrixView, Run } from '../types.js' */

/** What may be taken away. @typedef {'matrix' | 'row' | 'heads' | 'tokens' | 'next'} Kind */
/** A run with its matrix. @typedef {Shown & { run: Run, matrix: Matrix, view: MatrixView }} Whole */
/** @typedef {{ state: State, shown: Whole, session: Session }} Given */
/** @typedef {{ columns: string[], rows: (string | number)[][] }} Table */

/** Above so many numbers the weights of all heads are a file that nothing opens. */
const kMostNumbers = 4e6;

/** @type {readonly { kind: Kind, label: string }[]} */
export const kKinds = [
  { kind: 'matrix', label: 'Matrix' },
  { kind: 'row', label: 'Row in focus' },
  { kind: 'heads', label: 'All heads' },
  { kind: 'tokens', label: 'Tokens and arcs' },
  { kind: 'next', label: 'Next tokens' },
];

/** @param {Kind} kind @param {Given} given @returns {string} without its ending */
export function nameOf(kind, { state, shown }) {
  const base = fileName(shown.view, shown.run);
  if (kind === 'matrix') return base;
  if (kind === 'heads') return 'attention-heads';
  const row = state.rows.length > 0 && kind === 'row' ? state.rows.join('-') : state.focus.row;
  return kind === 'next' ? `attention-next-${row}` : `${base}-${kind}-${row}`;
}

/** The row in focus, or those that are added up. @param {Given} given */
export function rowValues({ state, shown: { matrix } }) {
  const rows = state.rows.length > 0 ? state.rows : [state.focus.row];
  return { rows, values: addedRows(matrix, rows, state.rows.length > 0 ? state.add : 'sum') };
}

/** No number is an empty field. @param {number} value */
const field = (value) => (Number.isNaN(value) ? '' : value);

/** @param {Kind} kind @param {Given} given @returns {Promise<Table>} */
export async function tableOf(kind, given) {
  const { state, shown } = given;
  const { run, matrix, candidates } = shown;
  const { tokens } = run;
  if (kind === 'next') {
    const columns = ['id', 'token', 'as trained', 'probability'];
    return { columns, rows: candidates.map(({ id, token, before, after }) => [id, token, before, after]) };
  }
  if (kind === 'row' || kind === 'tokens') {
    const { values } = rowValues(kind === 'tokens' ? { ...given, state: { ...state, rows: [] } } : given);
    return { columns: ['key', 'token', 'value'], rows: tokens.map((token, i) => [i, token, field(values[i])]) };
  }
  if (kind === 'matrix') {
    const rows = Array.from({ length: matrix.columns - matrix.from }, (_, i) => [
      ...[matrix.from + i, tokens[matrix.from + i]],
      ...Array.from(matrix.data.subarray(i * matrix.columns, (i + 1) * matrix.columns), field),
    ]);
    return { columns: ['row', 'token', ...tokens.map((token, i) => `${i} ${token}`)], rows };
  }
  /** @type {Table['rows']} */
  const rows = [];
  for (const { layer, head, weights } of await headsOf(given)) {
    weights.forEach((values, row) => {
      values.forEach((value, key) => {
        if (value !== null) rows.push([layer, head, row, key, value]);
      });
    });
  }
  return { columns: ['layer', 'head', 'row', 'key', 'weight'], rows };
}

/** @param {Table} table */
export function csvOf({ columns, rows }) {
  const quoted = (/** @type {string | number} */ value) =>
    typeof value === 'number' || !/[",\n\r]/.test(value) ? String(value) : `"${value.replaceAll('"', '""')}"`;
  return [columns, ...rows].map((row) => row.map(quoted).join(',')).join('\r\n');
}

/** Rows of weights of all heads; null where there is no number. @param {Given} given */
async function headsOf({ shown: { run }, session }) {
  const T = run.tokens.length;
  const heads = allHeads(run);
  if (T * T * heads.length > kMostNumbers)
    throw new Error(`the weights of all heads of ${T} tokens are too many for a file`);
  const all = [];
  for (const [layer, head] of heads) {
    const matrix = await session.matrixOf({ of: [[layer, head]] });
    all.push({ layer, head, weights: matrix ? rowsOf(matrix) : [] });
  }
  return all;
}

/** @param {Matrix} matrix */
const rowsOf = ({ data, columns }) =>
  Array.from({ length: data.length / columns }, (_, row) =>
    Array.from(data.subarray(row * columns, (row + 1) * columns), (value) => (Number.isNaN(value) ? null : value)),
  );

/** @param {Kind} kind @param {Given} given @returns {Promise<object>} */
export async function jsonOf(kind, given) {
  const { state, shown } = given;
  const { run, view, matrix, candidates } = shown;
  const { model, text, off, mask, scale, temperature, rotary, softcap, window } = state;
  const common = {
    ...{ model, text, tokens: run.tokens, ids: run.ids, countedFrom: 0, off },
    ...{ whatIf: { mask, scale, temperature, rotary, softcap, window } },
  };
  if (kind === 'next') return { ...common, row: state.focus.row, next: candidates };
  if (kind === 'heads') return { ...common, heads: await headsOf(given) };
  const { combine, of, show, hideFirst, mass } = view;
  const shownAs = { name: viewName(view, run), combine, heads: of, show, hideFirst, mass };
  if (kind === 'matrix') return { ...common, ...shownAs, from: matrix.from, rule: matrix.rule, rows: rowsOf(matrix) };
  const { rows, values } = rowValues(kind === 'tokens' ? { ...given, state: { ...state, rows: [] } } : given);
  return {
    ...common,
    ...shownAs,
    rows,
    add: state.add,
    values: Array.from(values, (value) => (Number.isNaN(value) ? null : value)),
  };
}
