// attention-wasm/onnx as a strict TypeScript user writes it. Checked, not run; what must not compile says so.
import { load } from 'attention-wasm';
import {
  onnxAttention,
  onnxRMSNormalization,
  onnxRotaryEmbedding,
  onnxSoftmax,
  onnxTensorScatter,
} from 'attention-wasm/onnx';
import { load as loadWorker } from 'attention-wasm/worker';

const attention = await load();
const x = { data: new Float32Array(48), shape: [1, 2, 3, 8] };
const { Y, present_key: presentKey } = onnxAttention(attention, { Q: x, K: x, V: x }, { is_causal: 1, scale: 1 });
const output: ArrayLike<number> = Y.data;
const normed = onnxRMSNormalization(attention, { X: x, scale: { data: new Float32Array(8), shape: [8] } }).Y;
const soft = onnxSoftmax(attention, { input: x }, { axis: -1 }).output;
const caches = { data: new Float32Array(12), shape: [3, 4] };
const ids = { data: Int32Array.of(0, 1, 2), shape: [1, 3] };
const turned = onnxRotaryEmbedding(attention, { X: x, cos_cache: caches, sin_cache: caches, position_ids: ids }).Y;
const cache = { data: new Float32Array(96), shape: [1, 2, 6, 8] };
const present = onnxTensorScatter(attention, { past_cache: cache, update: x, write_indices: [0] }).present_cache;
// Over a worker the results are promises.
const later = (await onnxAttention(await loadWorker(), { Q: x, K: x, V: x })).Y;
// @ts-expect-error: an input is missing
onnxAttention(attention, { Q: x, K: x });

export { later, normed, output, present, presentKey, soft, turned };
