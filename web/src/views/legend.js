// What the colours mean, and the cell in focus in words.
import { kGradient } from '../scale.js';
import { headName } from '../state.js';
import { byId, element } from './element.js';
import { headWeights } from './focus-map.js';
import { formatWeight } from './format.js';

/** @import { State } from '../state.js' */
/** @import { Run } from '../types.js' */

export function createLegend() {
  const tick = element('span', { className: 'tick' });
  const ramp = element('div', { className: 'ramp' }, tick);
  ramp.style.backgroundImage = kGradient;
  const highestText = element('span', { className: 'number end', id: 'highest' });
  const hidden = element('span', { className: 'key' }, element('span', { className: 'swatch' }), 'hidden by the mask');
  const axes = element(
    'p',
    { className: 'axes' },
    'Rows ask, columns are asked; each row adds up to 1. Layers, heads and tokens count from 0.',
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
  );
  byId('readout-place').append(readout);

  return {
    /** @param {State} state @param {Run} run @param {number} highest */
    show(state, run, highest) {
      const { row, column } = state.focus;
      const { tokens, causal } = run;
      const count = tokens.length;
      highestText.textContent = formatWeight(highest);
      hidden.hidden = !causal;
      tick.hidden = count === 0;
      if (count === 0) {
        readout.textContent = 'The text has no tokens yet.';
        return;
      }
      const weight = headWeights(run, state)[row * count + column];
      const isHidden = causal && column > row;
      tick.hidden = isHidden;
      tick.style.left = `${(100 * weight) / highest}%`;
      readout.replaceChildren(
        element('b', {}, headName(state.at)),
        ` · ${row} “${tokens[row]}” asks ${column} “${tokens[column]}”: `,
        element('b', { className: 'number' }, isHidden ? 'hidden' : formatWeight(weight)),
        state.locked ? ' · locked' : '',
      );
    },
  };
}
