// What the colours mean, and the cell in focus in words.
import { kGradient } from '../scale.js';
import { byId, element } from './element.js';
import { formatWeight } from './head-maps.js';

/** @typedef {import('../state.js').State} State */
/** @typedef {import('../model.js').Run} Run */

export function createLegend() {
  const tick = element('span', { className: 'tick' });
  const ramp = element('div', { className: 'ramp' }, tick);
  ramp.style.backgroundImage = kGradient;
  const highestText = element('span', { className: 'number end', id: 'highest' });
  const hidden = element('span', { className: 'key' }, element('span', { className: 'swatch' }), 'hidden by the mask');
  const axes = element(
    'p',
    { className: 'axes' },
    'Rows ask, columns are asked; each row adds up to 1. Heads and tokens count from 0.',
  );
  const readout = element('p', { className: 'readout', id: 'readout', 'aria-live': 'polite' });
  byId('legend').append(
    element(
      'div',
      { className: 'scale' },
      element('span', { className: 'scale-name' }, 'Weight'),
      element('span', { className: 'number' }, '0'),
      ramp,
      highestText,
      hidden,
    ),
    axes,
    readout,
  );

  return {
    /** @param {State} state @param {Run} run @param {number} highest */
    show({ causal, focus, locked }, { tokens, weights }, highest) {
      const { head, row, column } = focus;
      const count = tokens.length;
      highestText.textContent = formatWeight(highest);
      hidden.hidden = !causal;
      tick.hidden = count === 0;
      if (count === 0) {
        readout.textContent = 'The text has no tokens yet.';
        return;
      }
      const weight = weights.data[(head * count + row) * count + column];
      const isHidden = causal && column > row;
      tick.hidden = isHidden;
      tick.style.left = `${(100 * weight) / highest}%`;
      readout.replaceChildren(
        element('b', {}, `H${head}`),
        ` · ${row} “${tokens[row]}” asks ${column} “${tokens[column]}”: `,
        element('b', { className: 'number' }, isHidden ? 'hidden' : formatWeight(weight)),
        locked ? ' · locked' : '',
      );
    },
  };
}
