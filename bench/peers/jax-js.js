// jax-js: its own attention function, or the formula in its matrix products, compiled by its jit.
import { swapAxes } from '../workloads.js';

export const ways = ({ kind, Tq, H, Hkv }) =>
  kind === 'attention' && Tq > 1 && H !== Hkv ? ['dotProductAttention'] : ['dotProductAttention', 'matmul'];

/** It uses iterator helpers, which engines have from V8 12.2 on. */
function addIteratorHelpers() {
  const iterators = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));
  iterators.map ??= function* map(change) {
    for (const value of this) yield change(value);
  };
  iterators.filter ??= function* filter(keep) {
    for (const value of this) if (keep(value)) yield value;
  };
  iterators.toArray ??= function toArray() {
    return [...this];
  };
}

export async function create(workload, inputs, { way }) {
  addIteratorHelpers();
  const jax = await import('@jax-js/jax');
  await jax.init('wasm');
  jax.defaultDevice('wasm');
  const make = workload.kind === 'layer' ? layer : { dotProductAttention: builtIn, matmul: products }[way];
  const { compute, args, layout } = make(jax, workload, inputs, way);
  const array = ({ data, shape }) => jax.numpy.array(data).reshape(shape);
  const kept = workload.plain ? null : args.map(array);
  let output;
  return {
    run() {
      // Every function takes ownership of its arguments; `ref` keeps one for the next call.
      const given = kept ? kept.map((arg) => arg.ref) : args.map(array);
      output = compute(...given).dataSync();
    },
    output: () => ({ data: output, layout }),
    dispose() {
      for (const arg of kept ?? []) arg.dispose();
      compute.dispose?.();
    },
  };
}

/** A decoding row sees every key. */
const isMasked = ({ causal, Tq, Tk }) => causal && Tq === Tk;

function builtIn(jax, workload, { q, k, v }) {
  const { H, Hkv, Tq, Tk, D } = workload;
  const tokens = (data, heads, T) => ({ data: swapAxes(data, heads, T, D), shape: [1, T, heads, D] });
  const options = { isCausal: isMasked(workload) };
  return {
    compute: jax.jit((query, key, value) => jax.nn.dotProductAttention(query, key, value, options)),
    args: [tokens(q, H, Tq), tokens(k, Hkv, Tk), tokens(v, Hkv, Tk)],
    layout: 'bthd',
  };
}

/** Query heads of a group are rows of one product where there is one token; else there are no groups. */
function products(jax, workload, { q, k, v }) {
  const { H, Hkv, Tq, Tk, D } = workload;
  const rows = (H / Hkv) * Tq;
  const compute = jax.jit((query, key, value) => weigh(jax, workload, query, key, value));
  const args = [
    { data: q, shape: [Hkv, rows, D] },
    { data: k, shape: [Hkv, Tk, D] },
    { data: v, shape: [Hkv, Tk, D] },
  ];
  return { compute, args, layout: 'bhtd' };
}

function weigh(jax, workload, query, key, value) {
  const { Tq, Tk, D } = workload;
  const np = jax.numpy;
  let scores = np.matmul(query, np.matrixTranspose(key)).mul(1 / Math.sqrt(D));
  if (isMasked(workload)) scores = np.where(np.tri(Tq, Tk, 0, { dtype: 'bool' }), scores, Number.NEGATIVE_INFINITY);
  return np.matmul(jax.nn.softmax(scores, -1), value);
}

/** Weights are kept as [in, out]: transposed ones cost it three times as much. */
function layer(jax, workload, { x, wq, wk, wv, wo }, way) {
  const { E, Tq } = workload;
  const attend = way === 'matmul' ? attendByProducts : attendBuiltIn;
  const compute = (input, query, key, value, join) => {
    const [q, k, v] = [query, key, value].map((weight) => jax.numpy.matmul(input.ref, weight));
    input.dispose();
    return jax.numpy.matmul(attend(jax, workload, q, k, v), join);
  };
  const weights = [wq, wk, wv, wo].map((data) => ({ data: swapAxes(data, E, E, 1), shape: [E, E] }));
  return {
    compute: way === 'matmul' ? compute : jax.jit(compute), // jit makes the products slower here
    args: [{ data: x, shape: [Tq, E] }, ...weights],
    layout: 'bthd',
  };
}

function attendBuiltIn(jax, { E, H, Tq, D, causal }, ...projected) {
  const [q, k, v] = projected.map((values) => values.reshape([1, Tq, H, D]));
  return jax.nn.dotProductAttention(q, k, v, { isCausal: causal }).reshape([Tq, E]);
}

function attendByProducts(jax, workload, ...projected) {
  const { E, H, Tq, D } = workload;
  const np = jax.numpy;
  const [q, k, v] = projected.map((values) => np.transpose(values.reshape([Tq, H, D]), [1, 0, 2]));
  return np.transpose(weigh(jax, workload, q, k, v), [1, 0, 2]).reshape([Tq, E]);
}
