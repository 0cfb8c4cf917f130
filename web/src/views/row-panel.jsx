// The row in focus as a table with bars, or several rows added up: the numbers behind the colours, for eyes and for screen
// readers.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { Segments } from './parts.jsx';
import { heaviestOf } from './token-strip.jsx';
import { useCalmFocus, useStore } from './use-store.js';
import { formatValue, kQuantities, valueAt, viewName, whyEmpty } from './words.js';

/** @import { Matrix, MatrixView } from '../types.js' */
/** @import { App } from './use-store.js' */
/** @typedef {{ column: number, value: number, empty: string, why: string }} Line */

/** Above this the heaviest keys stand for all. */
const kMostLines = 128;
const kHeaviest = 32;

/**
 * Weights of several rows added up, key by key; what no row shows is no number.
 * @param {Matrix} matrix @param {readonly number[]} rows @param {'sum' | 'mean'} add @returns {Float32Array}
 */
export function addedRows(matrix, rows, add) {
  return Float32Array.from({ length: matrix.columns }, (_, column) => {
    const values = rows.map((row) => valueAt(matrix, row, column)).filter((value) => !Number.isNaN(value));
    if (values.length === 0) return Number.NaN;
    const sum = values.reduce((total, value) => total + value, 0);
    return add === 'mean' ? sum / rows.length : sum;
  });
}

/** @param {Matrix} matrix @param {MatrixView} view @param {Float32Array} values @param {number} row @returns {{ lines: Line[], left: number }} left: how many more keys there are */
function linesOf(matrix, view, values, row) {
  if (values.length > kMostLines) {
    const some = heaviestOf(values, kHeaviest).sort((a, b) => a.column - b.column);
    return { lines: some.map((each) => ({ ...each, empty: '', why: '' })), left: values.length - some.length };
  }
  const lines = Array.from(values, (value, column) => {
    const { short, long } = Number.isNaN(value) ? whyEmpty(matrix, view, row, column) : { short: '', long: '' };
    return { column, value, empty: short, why: long };
  });
  return { lines, left: 0 };
}

/** @param {{ app: App }} props */
export function RowPanel({ app }) {
  const { store, shown } = app;
  const { rows, add, locked } = useStore(store, 'rows', 'add', 'locked');
  const { run, matrix, view } = useStore(shown, 'matrix');
  const focus = useCalmFocus(store, matrix);
  const panel = useRef(/** @type {HTMLElement | null} */ (null));
  // Behind all that changes in this frame: to ask for a place lays it out.
  useLayoutEffect(() => {
    const frame = requestAnimationFrame(() => {
      const line = panel.current?.querySelector('.chosen');
      if (panel.current && line) keepInSight(panel.current, /** @type {HTMLElement} */ (line));
    });
    return () => cancelAnimationFrame(frame);
  });
  if (!run || !matrix || !view || focus.row < matrix.from) return <div id="row-panel" hidden />;
  const { row, column } = focus;
  const isAdded = rows.length > 0;
  const values = addedRows(matrix, isAdded ? rows : [row], isAdded ? add : 'sum');
  const { lines, left } = linesOf(matrix, view, values, isAdded ? rows[0] : row);
  const highest = values.reduce((most, value) => Math.max(most, Math.abs(value) || 0), 0) || 1;
  const sum = values.reduce((total, value) => total + (value || 0), 0);
  const indexOf = (/** @type {Event} */ event) =>
    Number(/** @type {HTMLElement} */ (event.target).closest('tr')?.dataset.index ?? -1);
  const move = (/** @type {PointerEvent} */ event) => {
    const index = indexOf(event);
    if (index >= 0 && !locked && index !== column && event.pointerType !== 'touch')
      store.set({ focus: { row, column: index } });
  };
  const lock = (/** @type {MouseEvent} */ event) => {
    const index = indexOf(event);
    if (index >= 0) store.set({ focus: { row, column: index }, locked: !(locked && index === column) });
  };
  return (
    <div class="row-block">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls where the text is long */}
      <section class="row-panel" id="row-panel" ref={panel} aria-label="Row in focus" tabIndex={0}>
        <table class="row-table">
          <caption>
            <b>{viewName(view, run)}</b>
            {isAdded ? ` · ${add} of ${rows.length === 1 ? 'row' : 'rows'} ${rows.join(', ')}` : ` · row ${row} `}
            {!isAdded && <b>{`“${run.tokens[row]}”`}</b>}
          </caption>
          <colgroup>
            <col class="index-column" />
            <col class="name-column" />
            <col />
            <col class="number-column" />
          </colgroup>
          <thead>
            <tr>
              <th scope="col" class="number">
                #
              </th>
              <th scope="col">Key</th>
              <th scope="col" colSpan={2}>
                {kQuantities[view.show]}
              </th>
            </tr>
          </thead>
          {/* biome-ignore lint/a11y/useKeyWithClickEvents: the matrix does the same by keys */}
          <tbody onPointerOver={move} onClick={lock}>
            {lines.map(({ column: index, value, empty, why }, i) => (
              <tr
                key={i}
                data-index={index}
                class={`${empty === 'hidden' ? 'hidden-key' : ''}${index === column ? ' chosen' : ''}`}
                title={why}
              >
                <td class="number index">{index}</td>
                <th scope="row" class="key-name">
                  {run.tokens[index]}
                </th>
                <td class="bar-cell">
                  <div
                    class={value < 0 ? 'bar negative' : 'bar'}
                    style={empty === 'hidden' ? '' : `scale: ${Math.abs(value || 0) / highest} 1`}
                  />
                </td>
                <td class="number">{empty || formatValue(view.show, value)}</td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            {left > 0 && (
              <tr>
                <td colSpan={4} class="more-keys">{`and ${left} more, which weigh less or are hidden`}</td>
              </tr>
            )}
            <tr>
              <th scope="row" colSpan={3}>
                Sum
              </th>
              <td class="number">{formatValue(view.show, sum)}</td>
            </tr>
          </tfoot>
        </table>
      </section>
      <RowSum app={app} />
    </div>
  );
}

/** Which rows are added up. @param {{ app: App }} props */
function RowSum({ app: { store } }) {
  const { focus, rows, add } = store.state;
  const isIn = rows.includes(focus.row);
  const toggled = isIn ? rows.filter((each) => each !== focus.row) : [...rows, focus.row].sort((a, b) => a - b);
  return (
    <div class="buttons row-sum">
      <button type="button" class="plain" onClick={() => store.set({ rows: toggled })}>
        {isIn ? `Take row ${focus.row} out` : `${rows.length === 0 ? 'Add up rows, from' : 'Add'} row ${focus.row}`}
      </button>
      {rows.length > 0 && (
        <>
          <Segments
            legend="Rows together"
            name="add"
            options={[
              { value: /** @type {const} */ ('sum'), label: 'Sum' },
              { value: 'mean', label: 'Mean' },
            ]}
            value={add}
            onChange={(next) => store.set({ add: next })}
          />
          <button type="button" class="plain" onClick={() => store.set({ rows: [] })}>
            One row
          </button>
        </>
      )}
    </div>
  );
}

/**
 * Scrolls the panel, and the panel alone, as far as it takes to show a line below the heading.
 * @param {HTMLElement} panel @param {HTMLElement} line
 */
function keepInSight(panel, line) {
  const margin = 3 * line.offsetHeight; // caption and heading stay in place above
  const top = line.getBoundingClientRect().top - panel.getBoundingClientRect().top;
  if (top < margin) panel.scrollTop += top - margin;
  else if (top + margin > panel.clientHeight) panel.scrollTop += top + margin - panel.clientHeight;
}
