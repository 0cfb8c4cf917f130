// Sentences outside of the instrument that depend on the run: who computes, and what equal tokens do.
import { byId } from './element.js';
import { formatWeight } from './format.js';

/** @import { ShownStore } from '../shown.js' */
/** @import { Run } from '../types.js' */

/** @param {ShownStore} shown */
export function createProseFacts(shown) {
  shown.subscribe(({ build, run }, changed) => {
    if (!changed.has('run')) return;
    if (build) {
      byId('about').textContent =
        `attention-wasm ${build.version} computes every number here on this device; nothing you type leaves it.`;
    }
    byId('repeat-note').textContent = run ? repeatNote(run) : '';
  });
}

/** Equal tokens have equal vectors, so only positions can tell them apart: says whether they do. @param {Run} run */
function repeatNote({ tokens, twins, layer }) {
  if (!twins) return '';
  const { first, second, difference } = twins;
  const start = `“${tokens[first]}” stands at ${first} and at ${second}, with the same vector. `;
  if (difference < 5e-4) {
    return `${start}Nothing tells the layer which is which, so in every head the two rows are the same. Turn the positions on.`;
  }
  const causes = [
    ...(layer?.config.rope ? ['RoPE turns their queries by position'] : []),
    ...(layer?.config.isCausal ? ['the mask shows them different pasts'] : []),
  ];
  return `${start}Their rows differ all the same, by up to ${formatWeight(difference)}: ${causes.join(', and ')}.`;
}
