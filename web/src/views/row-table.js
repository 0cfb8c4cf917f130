// The row in focus as a table with bars: the numbers behind one line of a map, for eyes and for screen readers.
import { headName } from '../state.js';
import { byId, element } from './element.js';
import { headWeights } from './focus-map.js';
import { formatWeight } from './format.js';

/** @import { State, Store } from '../state.js' */
/** @import { Run } from '../types.js' */
/** @typedef {{ row: HTMLTableRowElement, token: HTMLElement, bar: HTMLElement, value: HTMLElement }} Line */

/** @param {Store} store */
export function createRowTable(store) {
  const caption = element('caption');
  const body = element('tbody');
  const sum = element('td', { className: 'number' });
  const table = element(
    'table',
    { className: 'row-table' },
    caption,
    element(
      'thead',
      {},
      element(
        'tr',
        {},
        element('th', { scope: 'col', className: 'number' }, '#'),
        element('th', { scope: 'col' }, 'Key'),
        element('th', { scope: 'col', colSpan: 2 }, 'Weight'),
      ),
    ),
    body,
    element('tfoot', {}, element('tr', {}, element('th', { scope: 'row', colSpan: 3 }, 'Sum'), sum)),
  );
  const panel = byId('row-panel');
  panel.setAttribute('role', 'region');
  panel.setAttribute('aria-label', 'Row in focus');
  panel.tabIndex = 0; // it scrolls where the text is long
  panel.append(table);
  /** @type {Line[]} */
  const lines = [];

  /** @param {number} index @returns {Line} */
  function createLine(index) {
    const token = element('th', { scope: 'row', className: 'key-name' });
    const bar = element('div', { className: 'bar' });
    const value = element('td', { className: 'number' });
    const row = element(
      'tr',
      {},
      element('td', { className: 'number index' }, String(index)),
      token,
      element('td', { className: 'bar-cell' }, bar),
      value,
    );
    row.addEventListener('pointerenter', () => {
      if (!store.state.locked) store.set({ focus: { ...store.state.focus, column: index } });
    });
    body.append(row);
    return { row, token, bar, value };
  }

  return {
    /** @param {State} state @param {Run} run */
    show(state, run) {
      const { row, column } = state.focus;
      const { tokens, causal } = run;
      const count = tokens.length;
      while (lines.length > count) lines.pop()?.row.remove();
      while (lines.length < count) lines.push(createLine(lines.length));
      panel.hidden = count === 0;
      if (count === 0) return;
      caption.replaceChildren(
        element('b', {}, headName(state.at)),
        ` · row ${row} `,
        element('b', {}, `“${tokens[row]}”`),
      );
      const values = headWeights(run, state).subarray(row * count, (row + 1) * count);
      const highest = Math.max(...values);
      lines.forEach((line, index) => {
        const isHidden = causal && index > row;
        line.token.textContent = tokens[index];
        line.bar.style.width = isHidden ? '100%' : `${(100 * values[index]) / highest}%`;
        line.row.classList.toggle('hidden-key', isHidden);
        line.row.classList.toggle('chosen', index === column);
        line.value.textContent = isHidden ? 'hidden' : formatWeight(values[index]);
      });
      keepInSight(panel, lines[column].row);
      sum.textContent = formatWeight(values.reduce((total, value) => total + value, 0));
    },
  };
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
