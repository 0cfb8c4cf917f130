// The ways to say a workload in ONNX; which of them a runtime runs fastest is found by measurement.
import { swapAxes } from '../workloads.js';
import { onnxModel } from './model.js';

/**
 * A model, what is fed to it, and the layout of its output `y`.
 * @typedef {{ bytes: Uint8Array, feeds: Record<string, { type: string, dims: readonly number[], data: any }>, layout: 'bhtd' | 'bthd' }} Variant
 */

const kMicrosoft = 'com.microsoft';

/** @returns {Record<string, () => Variant>} by the name of the operator */
export function variants(workload, inputs) {
  const table = workload.kind === 'layer' ? kLayer : kAttention;
  return Object.fromEntries(
    Object.entries(table)
      .filter(([, { fits = () => true }]) => fits(workload))
      .map(([name, { build }]) => [name, () => build(workload, inputs)]),
  );
}

const kAttention = {
  Attention: { build: standard },
  MultiHeadAttention: { fits: ({ H, Hkv }) => H === Hkv, build: multiHead },
  // For a provider that does not heed `unidirectional`; the operator knows no groups of heads.
  'MultiHeadAttention, mask': { fits: ({ onGpu, causal, Tq, Tk }) => onGpu && causal && Tq === Tk, build: masked },
  GroupQueryAttention: { fits: ({ causal }) => causal, build: groupQuery },
  'MatMul, Softmax, MatMul': { build: products },
};

/** A model whose inputs are just what is fed. */
function variant(feeds, nodes, dims, layout, { outputs = {}, constants } = {}) {
  return { bytes: onnxModel({ inputs: feeds, outputs: { y: { dims }, ...outputs }, nodes, constants }), feeds, layout };
}

const tensor = (data, ...dims) => ({ type: 'float32', dims, data });

/** ai.onnx Attention. A decoding row sees every key: no mask. */
function standard({ H, Hkv, Tq, Tk, D, causal }, { q, k, v }) {
  const feeds = { q: tensor(q, 1, H, Tq, D), k: tensor(k, 1, Hkv, Tk, D), v: tensor(v, 1, Hkv, Tk, D) };
  const attributes = { is_causal: causal && Tq === Tk ? 1 : 0 };
  const node = { op: 'Attention', inputs: ['q', 'k', 'v'], outputs: ['y'], attributes };
  return variant(feeds, [node], [1, H, Tq, D], 'bhtd');
}

/** Heads side by side in a token's row, as these operators want them. */
function tokens({ H, Hkv, Tq, Tk, D }, { q, k, v }) {
  return {
    q: tensor(swapAxes(q, H, Tq, D), 1, Tq, H * D),
    k: tensor(swapAxes(k, Hkv, Tk, D), 1, Tk, Hkv * D),
    v: tensor(swapAxes(v, Hkv, Tk, D), 1, Tk, Hkv * D),
  };
}

function multiHead(workload, inputs) {
  const { H, Tq, Tk, D, causal } = workload;
  const node = {
    op: 'MultiHeadAttention',
    domain: kMicrosoft,
    inputs: ['q', 'k', 'v'],
    outputs: ['y'],
    attributes: { num_heads: H, unidirectional: causal && Tq === Tk ? 1 : 0 },
  };
  return variant(tokens(workload, inputs), [node], [1, Tq, H * D], 'bthd');
}

/** The causal order as a mask that is added; keys and values repeated for the heads of a group. */
function masked(workload, { q, k, v }) {
  const { H, Hkv, Tq, Tk, D } = workload;
  const repeated = (x) => {
    const result = new Float32Array(H * Tk * D);
    for (let h = 0; h < H; ++h) {
      const from = Math.floor((h * Hkv) / H) * Tk * D;
      result.set(x.subarray(from, from + Tk * D), h * Tk * D);
    }
    return result;
  };
  const node = {
    ...{ op: 'MultiHeadAttention', domain: kMicrosoft, inputs: ['q', 'k', 'v', '', '', 'mask'], outputs: ['y'] },
    attributes: { num_heads: H },
  };
  const feeds = tokens({ ...workload, Hkv: H }, { q, k: repeated(k), v: repeated(v) });
  const constants = { mask: { dims: [1, 1, Tq, Tk], data: causalMask(Tq) } };
  return variant(feeds, [node], [1, Tq, H * D], 'bthd', { constants });
}

/** Its keys and values are a cache and the new tokens: in decoding, all but the last one are in the cache. */
function groupQuery(workload, { q, k, v }) {
  const { H, Hkv, Tq, Tk, D } = workload;
  const isDecode = Tq < Tk;
  const past = Tk - Tq;
  const [kNew, vNew] = isDecode ? [k, v].map((data) => slices(data, Hkv, Tk, D, past, Tk)) : [k, v];
  const feeds = {
    ...tokens({ ...workload, Tk: Tq }, { q, k: kNew, v: vNew }),
    lengths: { type: 'int32', dims: [1], data: Int32Array.of(Tk - 1) },
    total: { type: 'int32', dims: [1], data: Int32Array.of(Tk) },
  };
  if (isDecode) {
    feeds.pastK = tensor(slices(k, Hkv, Tk, D, 0, past), 1, Hkv, past, D);
    feeds.pastV = tensor(slices(v, Hkv, Tk, D, 0, past), 1, Hkv, past, D);
  }
  const node = {
    op: 'GroupQueryAttention',
    domain: kMicrosoft,
    inputs: ['q', 'k', 'v', isDecode ? 'pastK' : '', isDecode ? 'pastV' : '', 'lengths', 'total'],
    outputs: ['y', 'presentK', 'presentV'],
    attributes: { num_heads: H, kv_num_heads: Hkv },
  };
  return variant(feeds, [node], [1, Tq, H * D], 'bthd');
}

/** Tokens `from` to `to` of every head. */
function slices(data, heads, count, D, from, to) {
  const result = new Float32Array(heads * (to - from) * D);
  for (let h = 0; h < heads; ++h)
    result.set(data.subarray((h * count + from) * D, (h * count + to) * D), h * (to - from) * D);
  return result;
}

/** The formula, with the query heads of a group side by side on an axis of their own. */
function products({ H, Hkv, Tq, Tk, D, causal }, { q, k, v }) {
  const G = H / Hkv;
  const isMasked = causal && Tq === Tk;
  const feeds = { q: tensor(q, 1, Hkv, G, Tq, D), k: tensor(k, 1, Hkv, 1, Tk, D), v: tensor(v, 1, Hkv, 1, Tk, D) };
  const scale = 1 / Math.sqrt(D);
  if (Tq === 1) {
    // One product for the group: its rows read the same keys.
    for (const [name, rows] of Object.entries({ q: G, k: Tk, v: Tk })) feeds[name].dims = [1, Hkv, rows, D];
  }
  const scores = { op: 'FusedMatMul', domain: kMicrosoft, inputs: ['q', 'k'], outputs: ['scores'] };
  const nodes = [
    { ...scores, attributes: { transB: 1, alpha: { float: scale } } },
    ...(isMasked ? [{ op: 'Add', inputs: ['scores', 'mask'], outputs: ['masked'] }] : []),
    { op: 'Softmax', inputs: [isMasked ? 'masked' : 'scores'], outputs: ['weights'], attributes: { axis: -1 } },
    { op: 'MatMul', inputs: ['weights', 'v'], outputs: ['y'] },
  ];
  const constants = isMasked ? { mask: { dims: [Tq, Tk], data: causalMask(Tq) } } : {};
  return variant(feeds, nodes, [...feeds.q.dims.slice(0, -1), D], 'bhtd', { constants });
}

function causalMask(T) {
  const mask = new Float32Array(T * T);
  for (let i = 0; i < T; ++i) mask.fill(Number.NEGATIVE_INFINITY, i * T + i + 1, (i + 1) * T);
  return mask;
}

// A layer. Its weights are constants of the model, as in any model that is shipped: the runtime packs them once.

const kLayer = {
  'MatMul, MultiHeadAttention': { build: layerMultiHead },
  'MatMul, MultiHeadAttention, mask': { fits: ({ onGpu, causal }) => onGpu && causal, build: layerMasked },
  'MatMul, ai.onnx Attention': { build: layerStandard },
  'com.microsoft Attention': { build: layerFused },
};

function layerVariant({ E, Tq }, { x, wq, wk, wv, wo }, nodes) {
  const constants = {
    qkv: { dims: [E, 3 * E], data: sideBySide([wq, wk, wv], E) },
    wo: { dims: [E, E], data: sideBySide([wo], E) },
    sizes: { type: 'int64', dims: [3], data: BigInt64Array.of(BigInt(E), BigInt(E), BigInt(E)) },
    bias: { dims: [3 * E], data: new Float32Array(3 * E) },
    mask: { dims: [1, 1, Tq, Tq], data: causalMask(Tq) },
  };
  const used = new Set(nodes.flatMap(({ inputs }) => inputs));
  const kept = Object.fromEntries(Object.entries(constants).filter(([name]) => used.has(name)));
  return variant({ x: tensor(x, 1, Tq, E) }, nodes, [1, Tq, E], 'bthd', { constants: kept });
}

/** Weights [out, in] transposed and joined: [in, all outs]. */
function sideBySide(weights, E) {
  const width = weights.length * E;
  const result = new Float32Array(E * width);
  weights.forEach((weight, n) => {
    for (let o = 0; o < E; ++o) for (let i = 0; i < E; ++i) result[i * width + n * E + o] = weight[o * E + i];
  });
  return result;
}

const kProject = [
  { op: 'MatMul', inputs: ['x', 'qkv'], outputs: ['joined'] },
  { op: 'Split', inputs: ['joined', 'sizes'], outputs: ['q', 'k', 'v'], attributes: { axis: -1 } },
];
const kJoin = { op: 'MatMul', inputs: ['heads', 'wo'], outputs: ['y'] };

function layerMultiHead(workload, inputs) {
  const attributes = { num_heads: workload.H, unidirectional: workload.causal ? 1 : 0 };
  const attend = {
    op: 'MultiHeadAttention',
    domain: kMicrosoft,
    inputs: ['q', 'k', 'v'],
    outputs: ['heads'],
    attributes,
  };
  return layerVariant(workload, inputs, [...kProject, attend, kJoin]);
}

function layerMasked(workload, inputs) {
  const attend = {
    ...{ op: 'MultiHeadAttention', domain: kMicrosoft, inputs: ['q', 'k', 'v', '', '', 'mask'], outputs: ['heads'] },
    attributes: { num_heads: workload.H },
  };
  return layerVariant(workload, inputs, [...kProject, attend, kJoin]);
}

function layerStandard(workload, inputs) {
  const { H, causal } = workload;
  const attributes = { q_num_heads: H, kv_num_heads: H, is_causal: causal ? 1 : 0 };
  const attend = { op: 'Attention', inputs: ['q', 'k', 'v'], outputs: ['heads'], attributes };
  return layerVariant(workload, inputs, [...kProject, attend, kJoin]);
}

function layerFused(workload, inputs) {
  const attributes = { num_heads: workload.H, unidirectional: workload.causal ? 1 : 0 };
  const attend = { op: 'Attention', domain: kMicrosoft, inputs: ['x', 'qkv', 'bias'], outputs: ['heads'], attributes };
  return layerVariant(workload, inputs, [attend, kJoin]);
}
