// Picks the next token from logits. The same seed picks the same tokens from the same logits on every machine.

/**
 * @typedef {object} Sampling
 * @property {number} temperature 0: the largest logit
 * @property {number} topK 0: all tokens
 * @property {number} topP 1: all tokens
 * @property {() => number} random
 */

/**
 * Numbers in [0, 1), 32 bits each, from a seed of 32 bits: mulberry32 by Tommy Ettinger, public domain.
 * @param {number} seed @returns {() => number}
 */
export function mulberry32(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @param {Float32Array} logits @returns {number} the first of the largest */
export function argmax(logits) {
  let best = 0;
  for (let i = 1; i < logits.length; ++i) if (logits[i] > logits[best]) best = i;
  return best;
}

/**
 * One draw from softmax(logits / temperature). topK keeps so many most probable tokens; after that topP keeps the
 * fewest most probable ones whose share of what is left reaches it. One number is drawn for each token: the walk goes
 * through the tokens that are kept, the most probable first (by number where nothing was left out), until their share
 * exceeds it.
 * @param {Float32Array} logits @param {Sampling} sampling
 * @returns {number}
 */
export function sample(logits, { temperature, topK, topP, random }) {
  const best = argmax(logits);
  if (temperature === 0) return best;
  const weights = Float64Array.from(logits, (logit) => Math.exp((logit - logits[best]) / temperature));
  let kept = Int32Array.from(weights, (_, i) => i);
  if (topK > 0 && topK < kept.length) {
    const least = weights.slice().sort()[kept.length - topK];
    kept = heaviestFirst(weights, least, kept).subarray(0, topK);
  }
  if (topP < 1) kept = nucleus(weights, kept, topP);
  let left = random() * sumOf(weights, kept);
  for (const i of kept) {
    left -= weights[i];
    if (left < 0) return i;
  }
  return kept[0] ?? best; // rounding, or a logit that is no number
}

/** @param {Float64Array} weights @param {Int32Array} tokens */
const sumOf = (weights, tokens) => tokens.reduce((sum, i) => sum + weights[i], 0);

/** Tokens of at least this weight; among equals, the smaller number first. @param {Float64Array} weights @param {number} least @param {Int32Array} tokens */
const heaviestFirst = (weights, least, tokens) =>
  tokens.filter((i) => weights[i] >= least).sort((a, b) => weights[b] - weights[a] || a - b);

/** @param {Float64Array} weights @param {Int32Array} tokens @param {number} topP */
function nucleus(weights, tokens, topP) {
  const total = sumOf(weights, tokens);
  // All tokens below this together are less than topP leaves out: they needn't be sorted.
  const tail = ((1 - topP) * total) / tokens.length;
  const sorted = heaviestFirst(weights, tail, tokens);
  let reached = 0;
  const last = sorted.findIndex((i) => {
    reached += weights[i];
    return reached >= topP * total;
  });
  return last < 0 ? sorted : sorted.subarray(0, last + 1);
}
