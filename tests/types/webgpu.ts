// What a TypeScript user sees of the WebGPU backend: promises, and `await` for whichever backend comes up.
import {
  type Attention,
  type AttentionOn,
  type Capabilities,
  load,
  type MultiHeadAttention,
  type Tensor,
} from 'attention-wasm';
import { Transformer } from 'attention-wasm/transformer';

const data = new Float32Array(24);
const x = { data, shape: [1, 2, 3, 4] };

const gpu: AttentionOn<'webgpu'> = await load({ backend: 'webgpu', device: {} });
const capabilities: Capabilities = gpu.capabilities();
const q = await gpu.tensor(data, [1, 2, 3, 4]);
const resident: Tensor<Float32Array> = q;
const copy: Float32Array = await q.read();
// @ts-expect-error: a promise on the GPU
const early: Float32Array = q.read();
const { output, lse } = await gpu.scaledDotProductAttention(q, x, x, { isCausal: true, returnLse: true });
const values: Float32Array = output.data;
// @ts-expect-error: a promise on the GPU
gpu.rmsNorm(x).data;
const chain: Promise<unknown>[] = [gpu.rope(q, { style: 'half', out: q }), gpu.silu(q, { out: q })];
const cache = await gpu.keyValueCache({ numKvHeads: 2, headDim: 4, capacity: 8, dtype: 'float16' });
await cache.append(x, x);
const attended: Float32Array = (await cache.attend(x)).output.data;
const length: number = cache.length;
const mha = await gpu.multiHeadAttention({ dModel: 8, numHeads: 2 });
const layer: MultiHeadAttention = mha;
await mha.loadStateDict({ 'q_proj.weight': x });
const projected: Float32Array = (await mha.forward(x, { cache })).output.data;
const packed = await gpu.packLinear(x);
const halves: Uint16Array = (await gpu.linear({ data: new Uint16Array(4), shape: [1, 4] }, packed)).data;

const model = await Transformer.load(gpu, { config: {}, weights: new ArrayBuffer(0) });
const tokens = await model.createCache({ capacity: 8 });
const logits: Float32Array = (await model.forward([1], { cache: tokens })).logits.data;
// @ts-expect-error: a promise on the GPU
model.forward([1]).logits;
await tokens.restore(await tokens.snapshot());
for await (const { token } of model.generate([1], { maxTokens: 1, cache: tokens })) console.log(token);
const lens: Float32Array = (await model.logitLens(x)).data;

const either = await load({ backend: 'auto' });
const perhaps = await Transformer.load(either, { config: {}, weights: new ArrayBuffer(0) });
const row: Float32Array = (await perhaps.forward([1])).logits.data;
const awaited: Float32Array = (await either.softmax(x)).data;
// @ts-expect-error: may be a promise
either.softmax(x).data;
const backend: 'wasm' | 'webgpu' = either.info.backend;

const plain: Attention = await load({ backend: 'wasm' });
const now: Float32Array = plain.softmax(x).data;
const read: Float32Array = plain.tensor(data, [24]).read();
gpu.dispose();

console.log(capabilities.unsupported, resident, copy, early, lse, values, chain, attended, length, layer, projected);
console.log(halves, awaited, backend, now, read, logits, lens, row);
