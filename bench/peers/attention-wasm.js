// This package. Tensors stay in its memory; a plain workload passes JavaScript's arrays both ways.

/**
 * @param {import('../workloads.js').Workload} workload
 * @param {{ simd: string, threads: number, eightBit?: boolean }} options
 */
export async function create(workload, inputs, { simd, threads, eightBit }) {
  const { load } = await import('../../dist/index.js');
  const attention = await load({ simd, threads });
  return { ...chosen(workload, eightBit)(attention, workload, inputs), dispose: () => attention.dispose() };
}

function chosen({ kind, plain: isPlain, Tq, Tk }, eightBit) {
  if (kind === 'layer') return layer;
  if (isPlain) return plain;
  if (eightBit) return Tq < Tk ? cache8 : resident8;
  return resident;
}

const shapes = ({ H, Hkv, Tq, Tk, D }) => ({ q: [1, H, Tq, D], k: [1, Hkv, Tk, D], v: [1, Hkv, Tk, D] });
const causal = (workload) => (workload.causal ? 'bottom-right' : false);

const resident8 = (...args) => resident(...args, { precision: 'int8' });

function resident(attention, workload, inputs, extra = {}) {
  const shape = shapes(workload);
  const [q, k, v] = ['q', 'k', 'v'].map((name) => attention.tensor(inputs[name], shape[name]));
  const out = attention.tensor(null, shape.q);
  const options = { isCausal: causal(workload), out, ...extra };
  return {
    run() {
      attention.scaledDotProductAttention(q, k, v, options);
    },
    output: () => ({ data: out.data, layout: 'bhtd' }),
  };
}

/** Keys and values as bytes, with a scale for each head and token. */
function cache8(attention, workload, { q, k, v }) {
  const { Hkv, Tk, D } = workload;
  const shape = shapes(workload);
  const cache = attention.keyValueCache({ numKvHeads: Hkv, headDim: D, capacity: Tk, dtype: 'int8' });
  cache.append({ data: k, shape: shape.k }, { data: v, shape: shape.v });
  const query = attention.tensor(q, shape.q);
  const out = attention.tensor(null, shape.q);
  return {
    run() {
      cache.attend(query, { out });
    },
    output: () => ({ data: out.data, layout: 'bhtd' }),
  };
}

function plain(attention, workload, inputs) {
  const shape = shapes(workload);
  const [q, k, v] = ['q', 'k', 'v'].map((name) => ({ data: inputs[name], shape: shape[name] }));
  const options = { isCausal: causal(workload) };
  let output;
  return {
    run() {
      ({ output } = attention.scaledDotProductAttention(q, k, v, options));
    },
    output: () => ({ data: output.data, layout: 'bhtd' }),
  };
}

function layer(attention, { E, H, Tq, causal: isCausal }, { x, wq, wk, wv, wo }) {
  const mha = attention.multiHeadAttention({ dModel: E, numHeads: H, isCausal });
  const weight = (data) => ({ data, shape: [E, E] });
  mha.loadStateDict({
    'q_proj.weight': weight(wq),
    'k_proj.weight': weight(wk),
    'v_proj.weight': weight(wv),
    'out_proj.weight': weight(wo),
  });
  const input = attention.tensor(x, [1, Tq, E]);
  const out = attention.tensor(null, [1, Tq, E]);
  return {
    run() {
      mha.forward(input, { out });
    },
    output: () => ({ data: out.data, layout: 'bthd' }),
  };
}
