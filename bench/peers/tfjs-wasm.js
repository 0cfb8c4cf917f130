// TensorFlow.js on its wasm backend: two matrix products around a softmax. Only products of two matrices go to its fast
// kernels; a product of batches, or with a transposed factor, runs in plain loops.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { swapAxes } from '../workloads.js';

export const ways = ({ kind }) => (kind === 'layer' ? ['head by head'] : ['head by head', 'batched']);

export async function create(workload, inputs, { way }) {
  const tf = await start();
  const make = workload.kind === 'layer' ? layer : { 'head by head': headByHead, batched }[way];
  const { compute, args, layout } = make(tf, workload, inputs);
  const tensors = () => args.map(({ data, shape }) => tf.tensor(data, shape));
  const kept = workload.plain ? null : tensors();
  let output;
  return {
    run() {
      tf.tidy(() => {
        output = compute(...(kept ?? tensors())).dataSync();
      });
    },
    output: () => ({ data: output, layout }),
    dispose: () => tf.removeBackend('wasm'),
  };
}

async function start() {
  // Its main files are CommonJS; the one for the backend registers itself with the one of the core.
  const require = createRequire(import.meta.url);
  const tf = require('@tensorflow/tfjs-core');
  const wasm = require('@tensorflow/tfjs-backend-wasm');
  wasm.setWasmPaths(join(dirname(require.resolve('@tensorflow/tfjs-backend-wasm')), '/'));
  await tf.setBackend('wasm');
  await tf.ready();
  return tf;
}

const isMasked = ({ causal, Tq, Tk }) => causal && Tq === Tk;

/** Added to the scores; [G T, T]. Finite, because infinities don't survive the softmax of this backend. */
function causalMask(tf, T, G) {
  const mask = new Float32Array(G * T * T);
  for (let i = 0; i < G * T; ++i) mask.fill(-1e9, i * T + (i % T) + 1, (i + 1) * T);
  return tf.tensor(mask, [G * T, T]);
}

/** q [rows, D] with keys as [D, Tk]. */
function attend(tf, q, kTransposed, v, mask, D) {
  const scores = tf.mul(tf.matMul(q, kTransposed), 1 / Math.sqrt(D));
  return tf.matMul(tf.softmax(mask ? tf.add(scores, mask) : scores), v);
}

/** A tensor for each head; the query heads of a group are rows of one product. */
function headByHead(tf, workload, { q, k, v }) {
  const { H, Hkv, Tq, Tk, D } = workload;
  const rows = (H / Hkv) * Tq;
  const mask = isMasked(workload) ? causalMask(tf, Tq, H / Hkv) : null;
  const heads = (data, count) =>
    Array.from({ length: Hkv }, (_, h) => ({
      data: data.subarray(h * count * D, (h + 1) * count * D),
      shape: [count, D],
    }));
  const compute = (...tensors) => {
    const head = (h) => {
      const [query, key, value] = [h, Hkv + h, 2 * Hkv + h].map((n) => tensors[n]);
      return tf.tidy(() => attend(tf, query, tf.transpose(key), value, mask, D));
    };
    return tf.concat(Array.from({ length: Hkv }, (_, h) => head(h)));
  };
  return { compute, args: [...heads(q, rows), ...heads(k, Tk), ...heads(v, Tk)], layout: 'bhtd' };
}

function batched(tf, workload, { q, k, v }) {
  const { H, Hkv, Tq, Tk, D } = workload;
  const mask = isMasked(workload) ? causalMask(tf, Tq, H / Hkv) : null;
  const compute = (query, key, value) => {
    const scores = tf.mul(tf.matMul(query, key, false, true), 1 / Math.sqrt(D));
    return tf.matMul(tf.softmax(mask ? tf.add(scores, mask) : scores), value);
  };
  const args = [
    { data: q, shape: [Hkv, (H / Hkv) * Tq, D] },
    { data: k, shape: [Hkv, Tk, D] },
    { data: v, shape: [Hkv, Tk, D] },
  ];
  return { compute, args, layout: 'bhtd' };
}

/** Weights are kept as [in, out]. */
function layer(tf, workload, { x, wq, wk, wv, wo }) {
  const { E, H, Tq, D } = workload;
  const mask = isMasked(workload) ? causalMask(tf, Tq, 1) : null;
  const compute = (input, query, key, value, join) => {
    const [q, k, v] = [query, key, value].map((weight) => tf.split(tf.matMul(input, weight), H, 1));
    const heads = q.map((head, h) => attend(tf, head, tf.transpose(k[h]), v[h], mask, D));
    return tf.matMul(tf.concat(heads, 1), join);
  };
  const weights = [wq, wk, wv, wo].map((data) => ({ data: swapAxes(data, E, E, 1), shape: [E, E] }));
  return { compute, args: [{ data: x, shape: [Tq, E] }, ...weights], layout: 'bthd' };
}
