// Loading, in bytes, and what went wrong.
import { byId } from './element.js';
import { formatBytes } from './format.js';

/** @import { ShownStore } from '../shown.js' */

/** @param {ShownStore} shown */
export function createProgress(shown) {
  const line = byId('progress');
  const bar = /** @type {HTMLProgressElement} */ (byId('progress-bar'));
  const text = byId('progress-text');
  const failure = byId('failure');
  shown.subscribe(({ progress, failure: message }, changed) => {
    if (changed.has('failure')) {
      failure.hidden = message === '';
      failure.textContent = message;
    }
    if (!changed.has('progress')) return;
    line.hidden = progress === null;
    if (!progress) return;
    const { stage, loaded, total } = progress;
    if (total > 0) {
      bar.max = total;
      bar.value = loaded;
    } else bar.removeAttribute('value');
    text.textContent = `${stage}: ${formatBytes(loaded)}${total > 0 ? ` of ${formatBytes(total)}` : ''}`;
  });
}
