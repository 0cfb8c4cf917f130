// Loading, in bytes, and what went wrong.
import { byId } from './element.js';
import { formatBytes } from './format.js';

/** @import { Progress } from '../types.js' */

export function createProgress() {
  const line = byId('progress');
  const bar = /** @type {HTMLProgressElement} */ (byId('progress-bar'));
  const text = byId('progress-text');
  const failure = byId('failure');
  return {
    /** @param {Progress} progress */
    show({ stage, loaded, total }) {
      line.hidden = false;
      if (total > 0) {
        bar.max = total;
        bar.value = loaded;
      } else bar.removeAttribute('value');
      text.textContent = `${stage}: ${formatBytes(loaded)}${total > 0 ? ` of ${formatBytes(total)}` : ''}`;
    },
    done() {
      line.hidden = true;
    },
    /** @param {string} message empty when all is well */
    fail(message) {
      failure.hidden = message === '';
      failure.textContent = message;
    },
  };
}
