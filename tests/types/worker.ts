// attention-wasm/worker as a strict TypeScript user writes it. Checked, not run; what must not compile says so.
import type { AttentionResult, Info } from 'attention-wasm';
import {
  AttentionError,
  type CallOptions,
  errorCodes,
  load,
  type Progress,
  ropeFrequencies,
  type WorkerAttention,
  type WorkerCacheSnapshot,
  WorkerKeyValueCache,
  type WorkerLoadOptions,
  WorkerMultiHeadAttention,
  WorkerPackedLinear,
  WorkerTensor,
  WorkerTransformer,
  WorkerTransformerCache,
  type WorkerTransformerOptions,
  type WorkerTransformerSnapshot,
} from 'attention-wasm/worker';
import { serveWorker } from 'attention-wasm/worker-host';

const options: WorkerLoadOptions = { simd: 'auto', createWorker: () => null, signal: AbortSignal.timeout(9) };
const attention: WorkerAttention = await load(options);
const info: Readonly<Info> = attention.info;
const x = { data: new Float32Array(6), shape: [1, 2, 3] };
const report = ({ step, done, total }: Progress): void => console.log(step, done / total);
const more: CallOptions = { signal: new AbortController().signal, onProgress: report, transfer: true };
const tensor: WorkerTensor = await attention.tensor(x.data, x.shape, 'float32', more);
const result: AttentionResult<Float32Array> = await attention.scaledDotProductAttention(x, tensor, x, {
  ...more,
  isCausal: true,
  out: tensor,
});
// @ts-expect-error: a promise is no result
const output: Float32Array = attention.softmax(x).data;
// @ts-expect-error: an option that does not exist
await attention.softmax(x, { dropout: 1 });
// @ts-expect-error: no element is here
tensor.data;
const packed: WorkerPackedLinear = await attention.packLinear(x);
const projected: Float32Array = (await attention.linear(x, packed, null, { out: tensor })).data;
const layer: WorkerMultiHeadAttention = await attention.multiHeadAttention({ dModel: 8, numHeads: 2, ...more });
const cache: WorkerKeyValueCache = await attention.keyValueCache({ numKvHeads: 1, headDim: 4, capacity: 4 });
await cache.append(x, tensor, more);
const snapshot: WorkerCacheSnapshot = await cache.snapshot();
await cache.restore(snapshot);
await layer.loadStateDict({ in_proj_weight: x });
const hidden: Float32Array = (await layer.forward(x, { cache })).output.data;
const counts: [number, Int32Array] = [cache.length, cache.positions];
const decoder: WorkerTransformerOptions = {
  config: {},
  weights: {},
  onProgress: ({ loaded, total }) => loaded / total,
};
const model: WorkerTransformer = await WorkerTransformer.load(attention, decoder);
const read: WorkerTransformerCache = await model.createCache({ capacity: 8, dtype: 'int8' });
for await (const { token, logits } of model.generate([1], {
  maxTokens: 2,
  cache: read,
  signal: AbortSignal.timeout(9),
})) {
  console.log(token + logits.data.length + read.length);
}
const held: WorkerTransformerSnapshot = await read.snapshot();
await read.restore(held);
const logits: Float32Array = (await model.forward([1, 2], { cache: read, capture: { hidden: true } })).logits.data;
// @ts-expect-error: the cache of a layer is none of a model
await model.forward([1], { cache });
tensor.dispose();
attention.dispose();
await serveWorker();

export {
  AttentionError,
  counts,
  errorCodes,
  hidden,
  info,
  logits,
  output,
  projected,
  result,
  ropeFrequencies,
  WorkerKeyValueCache,
  WorkerMultiHeadAttention,
  WorkerPackedLinear,
  WorkerTensor,
  WorkerTransformer,
  WorkerTransformerCache,
};
