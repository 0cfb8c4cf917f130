// Sentences that depend on the run: its time and build, the divisor of the scores, and what equal tokens do.
import { kModelWidth } from '../model.js';
import { byId, element } from './element.js';
import { formatWeight } from './head-maps.js';

/** @typedef {import('../state.js').State} State */
/** @typedef {import('../model.js').Run} Run */
/** @typedef {import('attention-wasm').Attention['info']} Info */

const kBuilds = { relaxed: 'relaxed SIMD', baseline: 'SIMD', scalar: 'no SIMD' };

/** @param {number} milliseconds */
function formatTime(milliseconds) {
  // Browsers round their clock: a run may begin and end in the same tick.
  if (milliseconds < 0.005) return '< 0.01 ms';
  return `${milliseconds < 10 ? milliseconds.toFixed(2) : milliseconds.toFixed(0)} ms`;
}

/** @param {Info} info */
function buildName({ backend, simd, threads }) {
  const kind = backend === 'wasm' ? kBuilds[/** @type {keyof typeof kBuilds} */ (simd)] : backend;
  return `${kind} · ${threads} ${threads === 1 ? 'thread' : 'threads'}`;
}

/** @param {Info} info */
export function createFacts(info) {
  byId('about').textContent =
    `attention-wasm ${info.version} computes every number here on this device; nothing you type leaves it.`;

  return {
    /** @param {State} state @param {Run} run */
    show({ heads }, run) {
      const width = kModelWidth / heads;
      byId('run').replaceChildren(
        element('b', { className: 'number' }, formatTime(run.milliseconds)),
        ` · ${buildName(info)}`,
      );
      const [, , tokens] = run.weights.shape;
      byId('reasons').replaceChildren(
        ...[
          `T = ${tokens} tokens, d_model = ${kModelWidth}, H = ${heads} heads of ${width} channels: ` +
            'four projections, scores, softmax and weighted values in one call.',
          ...info.reasons,
        ].map((fact) => element('li', {}, fact)),
      );
      byId('scale-text').textContent = `√${width} ≈ ${Math.sqrt(width).toFixed(2)}`;
      byId('repeat-note').textContent = repeatNote(run);
    },
  };
}

/** Equal tokens have equal vectors, so only positions can tell them apart: says whether they do. @param {Run} run */
function repeatNote({ tokens, weights, inputs }) {
  const places = repeatedPlaces(tokens);
  if (!places) return '';
  const [first, second] = places;
  const difference = largestDifference(weights, first, second);
  const start = `“${tokens[first]}” stands at ${first} and at ${second}, with the same vector. `;
  if (difference < 5e-4) {
    return `${start}Nothing tells the model which is which, so in every head the two rows are the same. Turn the positions on.`;
  }
  const causes = [
    ...(inputs.config.rope ? ['RoPE turns their queries by position'] : []),
    ...(inputs.config.isCausal ? ['the mask shows them different pasts'] : []),
  ];
  return `${start}Their rows differ all the same, by up to ${formatWeight(difference)}: ${causes.join(', and ')}.`;
}

/** The first two places of the first token that comes again. @param {string[]} tokens @returns {[number, number] | null} */
function repeatedPlaces(tokens) {
  for (let i = 0; i < tokens.length; i++) {
    const again = tokens.indexOf(tokens[i], i + 1);
    if (again !== -1) return [i, again];
  }
  return null;
}

/** @param {Run['weights']} weights @param {number} first @param {number} second */
function largestDifference({ data, shape }, first, second) {
  const [, heads, count] = shape;
  let largest = 0;
  for (let head = 0; head < heads; head++) {
    for (let column = 0; column < count; column++) {
      const a = data[(head * count + first) * count + column];
      const b = data[(head * count + second) * count + column];
      largest = Math.max(largest, Math.abs(a - b));
    }
  }
  return largest;
}
