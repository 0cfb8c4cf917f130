// What is shown, as numbers: CSV, and JSON with everything that is needed to read it. Both come in pieces, so that a file of
// a million numbers doesn't hold the page up.
import { allHeads } from '../state.js';
import { addedRows } from './row-panel.jsx';
import { heaviest } from './token-strip.jsx';
import { fileName, viewName } from './words.js';

/** @import { Shown } from '../shown.js' */
/** @import { Session } from '../session.js' */
/** @import { State } from '../state.js' */
/** @import { LensLayer, Matrix, MatrixView, Run } from '../types.js' */

/** What may be taken away. @typedef {'matrix' | 'row' | 'heads' | 'tokens' | 'next' | 'lens'} Kind */
/** A run with its matrix. @typedef {Shown & { run: Run, matrix: Matrix, view: MatrixView }} Whole */
/** @typedef {{ state: State, shown: Whole, session: Session, lens: readonly LensLayer[] }} Given lens: of the row in focus, where it is asked for */
/** @typedef {(string | number)[]} Line */

/** Above so many numbers the weights of all heads are a file that nothing opens. */
const kMostNumbers = 4e6;

/** @type {readonly { kind: Kind, label: string }[]} */
export const kKinds = [
  { kind: 'matrix', label: 'Matrix' },
  { kind: 'row', label: 'Row in focus' },
  { kind: 'heads', label: 'All heads' },
  { kind: 'tokens', label: 'Tokens and arcs' },
  { kind: 'next', label: 'Next tokens' },
  { kind: 'lens', label: 'Layer by layer' },
];

/** @param {Kind} kind @param {Given} given @returns {string} without its ending */
export function nameOf(kind, { state, shown }) {
  const base = fileName(shown.view, shown.run);
  if (kind === 'matrix') return base;
  if (kind === 'heads') return 'attention-heads';
  if (kind === 'next') return `attention-next-${shown.nextRow}`;
  if (kind === 'lens') return `attention-lens-${state.focus.row}`;
  return `${base}-${kind}-${state.rows.length > 0 && kind === 'row' ? state.rows.join('-') : state.focus.row}`;
}

/** The row in focus, or those that are added up. @param {Given} given */
export function rowValues({ state, shown: { matrix } }) {
  const rows = state.rows.length > 0 ? state.rows : [state.focus.row];
  return { rows, values: addedRows(matrix, rows, state.rows.length > 0 ? state.add : 'sum') };
}

/** The arcs are of one row, whatever is added up. @param {Kind} kind @param {Given} given @returns {Given} */
const ofKind = (kind, given) => (kind === 'tokens' ? { ...given, state: { ...given.state, rows: [] } } : given);

/** Rows of a matrix; null where there is no number. @param {Matrix} matrix */
function* rowsOf({ data, columns }) {
  for (let at = 0; at < data.length; at += columns) {
    yield Array.from(data.subarray(at, at + columns), (value) => (Number.isNaN(value) ? null : value));
  }
}

/** The weights of all heads, one after the other. @param {Given} given */
async function* headsOf({ shown: { run }, session }) {
  const T = run.tokens.length;
  const heads = allHeads(run);
  if (T * T * heads.length > kMostNumbers)
    throw new Error(`the weights of all heads of ${T} tokens are too many for a file`);
  for (const [layer, head] of heads) {
    const matrix = await session.matrixOf({ of: [[layer, head]] });
    if (matrix) yield { layer, head, matrix };
  }
}

/** No number is an empty field. @param {number | null} value */
const field = (value) => (value === null || Number.isNaN(value) ? '' : value);

/** Lines, some at a time; the first names the columns. @param {Kind} kind @param {Given} given @returns {AsyncGenerator<Line[]>} */
async function* linesOf(kind, given) {
  const { run, matrix, candidates } = given.shown;
  const { tokens } = run;
  if (kind === 'next') {
    yield [['id', 'token', 'as trained', 'probability']];
    yield candidates.map(({ id, token, before, after }) => [id, token, before, after]);
  } else if (kind === 'lens') {
    yield [['layers', 'rank', 'id', 'token', 'probability']];
    for (const { layer, tokens: likeliest } of given.lens)
      yield likeliest.map(({ id, token, probability }, i) => [layer, i + 1, id, token, probability]);
  } else if (kind === 'row' || kind === 'tokens') {
    const { values } = rowValues(ofKind(kind, given));
    yield [['key', 'token', 'value']];
    yield tokens.map((token, i) => [i, token, field(values[i])]);
  } else if (kind === 'matrix') {
    yield [['row', 'token', ...tokens.map((token, i) => `${i} ${token}`)]];
    let row = matrix.from;
    for (const values of rowsOf(matrix)) yield [[row, tokens[row++], ...values.map(field)]];
  } else {
    yield [['layer', 'head', 'row', 'key', 'weight']];
    for await (const { layer, head, matrix: weights } of headsOf(given)) {
      let row = weights.from;
      for (const values of rowsOf(weights)) {
        const lines = values.map((value, key) => [layer, head, row, key, field(value)]);
        yield lines.filter((line) => line[4] !== '');
        row++;
      }
    }
  }
}

/** @param {Kind} kind @param {Given} given @returns {AsyncGenerator<string>} */
export async function* csvOf(kind, given) {
  const quoted = (/** @type {string | number} */ value) =>
    typeof value === 'number' || !/[",\n\r]/.test(value) ? String(value) : `"${value.replaceAll('"', '""')}"`;
  let isFirst = true;
  for await (const lines of linesOf(kind, given)) {
    if (lines.length === 0) continue;
    yield (isFirst ? '' : '\r\n') + lines.map((line) => line.map(quoted).join(',')).join('\r\n');
    isFirst = false;
  }
}

/** An object as JSON whose last member is a long list. @param {object} start @param {string} name @param {AsyncIterable<string> | Iterable<string>} list JSON of what is in it */
async function* withList(start, name, list) {
  yield `${JSON.stringify(start).slice(0, -1)},${JSON.stringify(name)}:[`;
  yield* list;
  yield ']}';
}

/** @param {Matrix} matrix */
function* rowTexts(matrix) {
  let comma = '';
  for (const values of rowsOf(matrix)) {
    yield comma + JSON.stringify(values);
    comma = ',';
  }
}

/** @param {Given} given */
async function* headTexts(given) {
  let comma = '';
  for await (const { layer, head, matrix } of headsOf(given)) {
    yield `${comma}{"layer":${layer},"head":${head},"weights":[`;
    yield* rowTexts(matrix);
    yield ']}';
    comma = ',';
  }
}

/** @param {Kind} kind @param {Given} given @returns {AsyncGenerator<string>} */
export async function* jsonOf(kind, given) {
  const { state, shown, lens } = given;
  const { run, view, matrix, candidates } = shown;
  const { model, text, off, mask, scale, temperature, rotary, softcap, window } = state;
  const { heads, causal, rope, seed } = state;
  const common = {
    ...{ model, text, tokens: run.tokens, ids: run.ids, countedFrom: 0 },
    ...(model === 'untrained'
      ? { layer: { heads, causal, rope, seed } }
      : { off, whatIf: { mask, scale, temperature, rotary, softcap, window } }),
  };
  if (kind === 'next') yield JSON.stringify({ ...common, row: shown.nextRow, next: candidates });
  else if (kind === 'lens') yield JSON.stringify({ ...common, row: state.focus.row, lens });
  else if (kind === 'heads') yield* withList(common, 'heads', headTexts(given));
  else {
    const { combine, of, show, hideFirst, mass } = view;
    const as = { ...common, name: viewName(view, run), combine, heads: of, show, hideFirst, mass };
    if (kind === 'matrix') yield* withList({ ...as, from: matrix.from, rule: matrix.rule }, 'rows', rowTexts(matrix));
    else {
      const { rows, values } = rowValues(ofKind(kind, given));
      const arcs = kind === 'tokens' ? { arcs: heaviest(matrix, state.focus.row, state.arcs) } : { add: state.add };
      const numbers = Array.from(values, (value) => (Number.isNaN(value) ? null : value));
      yield JSON.stringify({ ...as, rows, ...arcs, values: numbers });
    }
  }
}
