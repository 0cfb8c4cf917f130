// What the colours mean, with a number at each end.
import { gradientOf, scaleFor } from '../scale.js';
import { highestOf } from './focus-map.js';
import { useStore } from './use-store.js';
import { formatValue, kQuantities, valueAt } from './words.js';

/** @import { App } from './use-store.js' */

/** @param {{ app: App }} props */
export function Legend({ app }) {
  const state = useStore(app.store, 'focus', 'range');
  const { run, matrix, view } = useStore(app.shown, 'matrix');
  if (!run || !view) return null;
  const { row, column } = state.focus;
  const scale = scaleFor(view.show);
  const highest = matrix ? highestOf(state, matrix, view.show)(Math.max(row, matrix.from)) : 1;
  const value = matrix ? valueAt(matrix, row, column) : Number.NaN;
  const place = scale.isDiverging ? (value / highest + 1) / 2 : value / highest;
  const isByRow = view.show === 'weights' && state.range === 'row';
  const isWhole = view.show === 'weights' && view.combine !== 'max' && view.mass === 1;
  const hasHidden = matrix && (matrix.rule.causal || matrix.rule.left >= 0 || matrix.rule.right >= 0);
  return (
    <div class="legend" id="legend">
      <div class="scale-line">
        <div class="scale">
          <span class="scale-name">{kQuantities[view.show]}</span>
          <span class="number">{scale.isDiverging ? formatValue(view.show, -highest) : '0'}</span>
          <div class="ramp" style={{ backgroundImage: gradientOf(scale) }}>
            {scale.isDiverging && <span class="middle" />}
            {!Number.isNaN(value) && highest > 0 && <span class="tick" style={{ left: `${100 * place}%` }} />}
          </div>
          <span class="number">
            <span id="highest">{formatValue(view.show, highest)}</span>
            {isByRow ? `, the maximum of row ${row}` : ''}
          </span>
        </div>
        {view.show === 'weights' && (view.mass < 1 || view.hideFirst) && (
          <span class="key">
            <span class="swatch blank" />
            left out
          </span>
        )}
        {hasHidden && (
          <span class="key">
            <span class="swatch" />
            {matrix.rule.left >= 0 || matrix.rule.right >= 0 ? 'hidden by mask or window' : 'hidden by the mask'}
          </span>
        )}
      </div>
      <p class="axes">
        {`Rows ask, columns are asked${isWhole ? '; each row adds up to 1' : ''}. Layers, heads and tokens count from 0.`}
      </p>
    </div>
  );
}
