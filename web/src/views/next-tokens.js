// The tokens that are likeliest after the row in focus, before and after heads were switched off.
import { byId, element } from './element.js';
import { formatPercent } from './format.js';

/** @import { Candidate, Run } from '../types.js' */
/** @import { State } from '../state.js' */

export function createNextTokens() {
  const panel = byId('next');
  const caption = element('caption');
  const body = element('tbody');
  const note = element('p', { className: 'note' });
  const table = element(
    'table',
    { className: 'row-table next-table' },
    caption,
    element(
      'thead',
      {},
      element(
        'tr',
        {},
        element('th', { scope: 'col' }, 'Token'),
        element('th', { scope: 'col', colSpan: 2 }, 'Probability'),
      ),
    ),
    body,
  );
  panel.append(table, note);

  /** @param {string} kind @param {number} share @param {string} name for those who don't see the colour */
  const line = (kind, share, name) => {
    const bar = element('div', { className: `bar ${kind}` });
    bar.style.width = `${100 * share}%`;
    return { bar, value: element('span', { className: `number ${kind}`, title: name }, formatPercent(share)) };
  };

  return {
    /** @param {State} state @param {Run} run @param {readonly Candidate[]} candidates */
    show({ focus, off }, { tokens }, candidates) {
      panel.hidden = candidates.length === 0;
      caption.replaceChildren('Next token after ', element('b', {}, `${focus.row} “${tokens[focus.row] ?? ''}”`));
      const isChanged = off.length > 0;
      body.replaceChildren(
        ...candidates.map(({ token, before, after }) => {
          const lines = isChanged
            ? [line('before', before, 'all heads on'), line('after', after, 'with heads off')]
            : [line('after', after, 'probability')];
          return element(
            'tr',
            {},
            element('th', { scope: 'row', className: 'key-name' }, token),
            element('td', { className: 'bar-cell' }, ...lines.map(({ bar }) => bar)),
            element('td', { className: 'number' }, ...lines.map(({ value }) => value)),
          );
        }),
      );
      note.hidden = !isChanged;
      note.replaceChildren(
        element('span', { className: 'swatch before' }),
        ' all heads on ',
        element('span', { className: 'swatch after' }),
        ` with ${off.length} off`,
      );
    },
  };
}
