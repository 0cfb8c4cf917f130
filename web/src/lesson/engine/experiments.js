// Measurements of the lesson: what the kernels give for inputs that the reader sets, and what that costs.
import { load } from 'attention-wasm';
import { normals } from '../../engine/random.js';

/** @import { Attention } from 'attention-wasm' */
/** @import { Tensor } from '../../types.js' */
/** @import { RopeSettings } from './rope-of.js' */

/**
 * Rows of weights in numbers: entropy in nats, the largest weight, and how strongly weights follow their scores
 * (Σ w (1 − w), the trace of the softmax's Jacobian), each averaged over rows; and one row.
 * @typedef {{ entropy: number, largest: number, slope: number, row: number[] }} Sharpness
 */
/** @typedef {{ d: number, deviation: number, plain: Sharpness, scaled: Sharpness }} ScaleResult `deviation` of q·k */

const kKeys = 64;
const kWidths = [2, 4, 8, 16, 32, 64, 128, 256, 512];

/** @param {Float32Array} weights [T, T] @returns {Sharpness} */
function sharpness(weights) {
  let [entropy, largest, squares] = [0, 0, 0];
  for (let at = 0; at < weights.length; at += kKeys) {
    const row = weights.subarray(at, at + kKeys);
    for (const w of row) {
      if (w > 0) entropy -= w * Math.log(w);
      squares += w * w;
    }
    largest += Math.max(...row);
  }
  return {
    ...{ entropy: entropy / kKeys, largest: largest / kKeys, slope: 1 - squares / kKeys },
    row: Array.from(weights.subarray(0, kKeys)),
  };
}

/** Random queries and keys of each width, with and without the factor. @param {Attention} attention @returns {ScaleResult[]} */
export function scaleExperiment(attention) {
  return kWidths.map((d) => {
    const tensor = (/** @type {number} */ seed) => ({ data: normals(seed + d, kKeys * d, 1), shape: [kKeys, d] });
    const [q, k] = [tensor(1000), tensor(2000)];
    const run = (/** @type {object} */ options) =>
      /** @type {Tensor} */ (attention.scaledDotProductAttention(q, k, k, options).weights).data;
    const products = run({ scale: 1, needWeights: { stage: 'scores' } });
    const squares = products.reduce((sum, value) => sum + value * value, 0);
    return {
      d,
      deviation: Math.sqrt(squares / products.length),
      plain: sharpness(run({ scale: 1, needWeights: true })),
      scaled: sharpness(run({ needWeights: true })),
    };
  });
}

/** @typedef {{ q: number[], k: number[], rope: RopeSettings, pairs: (readonly [m: number, n: number])[] }} RopeQuestion */

/**
 * A query at position m, a key at position n: both turned, and their product over √D.
 * @param {Attention} attention @param {RopeQuestion} question
 * @returns {Pick<RopeQuestion, 'pairs' | 'rope'> & { scores: number[], q: number[], k: number[] }} the turned vectors are those of the first pair
 */
export function ropeScores(attention, { q, k, rope, pairs }) {
  const N = pairs.length;
  const D = q.length;
  const turn = (/** @type {number[]} */ x, /** @type {number} */ which) => {
    const data = new Float32Array(N * D);
    for (let n = 0; n < N; n++) data.set(x, n * D);
    const positions = { data: Int32Array.from(pairs, (pair) => pair[which]), shape: [N, 1] };
    return attention.rope({ data, shape: [N, 1, 1, D] }, { ...rope, positions });
  };
  const [turnedQ, turnedK] = [turn(q, 0), turn(k, 1)];
  const options = { needWeights: /** @type {const} */ ({ stage: 'scores' }) };
  const { weights } = attention.scaledDotProductAttention(turnedQ, turnedK, turnedK, options);
  return {
    ...{ pairs, rope },
    scores: Array.from(/** @type {Tensor} */ (weights).data),
    q: Array.from(turnedQ.data.subarray(0, D)),
    k: Array.from(turnedK.data.subarray(0, D)),
  };
}

/**
 * @typedef {object} Cost of one head, on one thread
 * @property {number} T
 * @property {number} milliseconds of the fused kernel, the fastest of several
 * @property {number} fusedBytes that the module's memory grew by for it
 * @property {number} matrixBytes and for the call that gives all weights
 */

const kCostWidth = 64;
const kLeastTime = 30;
const kMostRuns = 40;

/** A fresh instance, whose memory nothing else has grown. @param {number} T @returns {Promise<Cost>} */
export async function measureCost(T) {
  const attention = await load({ threads: 1 });
  try {
    const tensor = (/** @type {number} */ seed) => ({ data: normals(seed, T * kCostWidth, 1), shape: [T, kCostWidth] });
    const [q, k, v] = [tensor(1), tensor(2), tensor(3)];
    const start = attention.memory.total;
    let [fastest, spent, runs] = [Number.POSITIVE_INFINITY, 0, 0];
    while (spent < kLeastTime && runs < kMostRuns) {
      const began = performance.now();
      attention.scaledDotProductAttention(q, k, v);
      const took = performance.now() - began;
      fastest = Math.min(fastest, took);
      spent += took;
      runs++;
    }
    const fusedBytes = attention.memory.total - start;
    attention.scaledDotProductAttention(q, k, v, { needWeights: true });
    const matrixBytes = attention.memory.total - start;
    return { T, milliseconds: fastest, fusedBytes, matrixBytes };
  } finally {
    attention.dispose();
  }
}
