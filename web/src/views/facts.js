// Sentences that depend on the run and the model: time and build, sizes, and what equal tokens do.
import { byId, element } from './element.js';
import { formatBytes, formatTime, formatWeight } from './format.js';

/** @import { BuildInfo, ModelInfo, Run } from '../types.js' */

const kBuilds = { relaxed: 'relaxed SIMD', baseline: 'SIMD', scalar: 'no SIMD' };

/** @param {BuildInfo} info */
function buildName({ backend, simd, threads }) {
  const kind = backend === 'wasm' ? kBuilds[/** @type {keyof typeof kBuilds} */ (simd)] : backend;
  return `${kind} · ${threads} ${threads === 1 ? 'thread' : 'threads'}`;
}

/** @param {ModelInfo} info */
function modelFact({ name, parameters, layers, heads, kvHeads, width, vocabulary, fileBytes, memoryBytes }) {
  const millions = (parameters / 1e6).toFixed(parameters < 1e7 ? 2 : 0);
  return (
    `${name}: ${millions} M parameters, ${layers} layers of ${heads} query heads on ${kvHeads} key/value heads, width ` +
    `${width}, ${vocabulary} tokens; ${formatBytes(fileBytes)} of weights, ${formatBytes(memoryBytes)} in memory.`
  );
}

export function createFacts() {
  return {
    /** Before anything has come up. */
    showStored() {
      byId('run').replaceChildren('A stored example, until the model is here');
    },
    /** @param {BuildInfo} info */
    showBuild(info) {
      byId('about').textContent =
        `attention-wasm ${info.version} computes every number here on this device; nothing you type leaves it.`;
    },
    /** @param {BuildInfo} info @param {ModelInfo | null} model null for the untrained layer @param {Run} run */
    show(info, model, run) {
      byId('run').replaceChildren(
        element('b', { className: 'number' }, formatTime(run.milliseconds)),
        ` · ${buildName(info)}`,
      );
      const fact = model
        ? `T = ${run.tokens.length} tokens through ${modelFact(model)}`
        : `T = ${run.tokens.length} tokens, one layer of ${run.heads} heads: projections, scores, softmax and weighted values.`;
      byId('reasons').replaceChildren(...[fact, ...info.reasons].map((text) => element('li', {}, text)));
      byId('repeat-note').textContent = model ? '' : repeatNote(run);
    },
  };
}

/** Equal tokens have equal vectors, so only positions can tell them apart: says whether they do. @param {Run} run */
function repeatNote({ tokens, weights, heads, layer }) {
  const places = repeatedPlaces(tokens);
  if (!places) return '';
  const [first, second] = places;
  const difference = largestDifference(weights, heads, tokens.length, first, second);
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

/** The first two places of the first token that comes again. @param {string[]} tokens @returns {[number, number] | null} */
function repeatedPlaces(tokens) {
  for (let i = 0; i < tokens.length; i++) {
    const again = tokens.indexOf(tokens[i], i + 1);
    if (again !== -1) return [i, again];
  }
  return null;
}

/** @param {Float32Array} weights @param {number} heads @param {number} count @param {number} first @param {number} second */
function largestDifference(weights, heads, count, first, second) {
  let largest = 0;
  for (let head = 0; head < heads; head++) {
    for (let column = 0; column < count; column++) {
      const a = weights[(head * count + first) * count + column];
      const b = weights[(head * count + second) * count + column];
      largest = Math.max(largest, Math.abs(a - b));
    }
  }
  return largest;
}
