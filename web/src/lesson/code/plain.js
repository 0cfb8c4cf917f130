// The module of the code pane once more, in plain double precision without the package: what its run is compared with.

/** @import { Tensor } from '../../types.js' */

/** @param {number[]} x @param {Tensor} weight [N, K] */
const times = (x, { data, shape: [N, K] }) =>
  Array.from({ length: N }, (_, n) => x.reduce((sum, value, i) => sum + value * data[n * K + i], 0));

/** Turns pairs (2i, 2i + 1). @param {number[]} x @param {number} position */
function turn(x, position) {
  return x.map((value, c) => {
    const angle = position * 10000 ** (-(c - (c % 2)) / x.length);
    const other = c % 2 ? x[c - 1] : -x[c + 1];
    return value * Math.cos(angle) + other * Math.sin(angle);
  });
}

/** @param {number[]} scores */
function softmax(scores) {
  const highest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - highest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/**
 * Causal multi-head self-attention with RoPE.
 * @param {Tensor} x [1, T, d] @param {Record<string, Tensor>} parameters @param {number} heads
 * @returns {number[]} [T, d] in one row
 */
export function plainAttention({ data, shape: [, T, d] }, parameters, heads) {
  const D = d / heads;
  const tokens = Array.from({ length: T }, (_, t) => Array.from(data.subarray(t * d, (t + 1) * d)));
  const head = (/** @type {string} */ name, /** @type {number} */ h) =>
    tokens.map((token) => times(token, parameters[`${name}_proj.weight`]).slice(h * D, (h + 1) * D));
  const outputs = Array.from({ length: heads }, (_, h) => {
    const [q, k] = ['q', 'k'].map((name) => head(name, h).map(turn));
    const v = head('v', h);
    return q.map((query, i) => {
      const scores = k
        .slice(0, i + 1)
        .map((key) => query.reduce((sum, value, c) => sum + value * key[c], 0) / Math.sqrt(D));
      const weights = softmax(scores);
      return query.map((_, c) => weights.reduce((sum, weight, j) => sum + weight * v[j][c], 0));
    });
  });
  return tokens.flatMap((_, t) =>
    times(
      outputs.flatMap((rows) => rows[t]),
      parameters['out_proj.weight'],
    ),
  );
}
