// Every export of the package as a strict TypeScript user writes it. Checked, not run; what must not compile says so.
import {
  type AppendOptions,
  type AttendOptions,
  type Attention,
  AttentionError,
  type AttentionOptions,
  type AttentionResult,
  type CacheDtype,
  CacheSnapshot,
  type Dtype,
  type ErrorCode,
  errorCodes,
  type ForwardOptions,
  type Info,
  KeyValueCache,
  type KeyValueCacheOptions,
  type LayerNormOptions,
  type LoadOptions,
  load,
  type Mask,
  type MemoryUsage,
  MultiHeadAttention,
  type MultiHeadAttentionOptions,
  type NeedWeights,
  PackedLinear,
  type Result,
  type RopeOptions,
  type RopeScaling,
  ropeFrequencies,
  Tensor,
  type TensorLike,
  type VarlenOptions,
} from 'attention-wasm';
import { readSafetensors } from 'attention-wasm/safetensors';

const options: LoadOptions = { backend: 'wasm', simd: 'auto', threads: 'auto', wasmUrl: new URL('file:///a.wasm') };
const attention: Attention = await load(options);
await load();
await load({ wasmBinary: new Uint8Array(8), threads: 2 });
const info: Readonly<Info> = attention.info;
const reasons: string[] = info.reasons;
const { allocated, total }: MemoryUsage = attention.memory;
// @ts-expect-error: a build that does not exist
await load({ simd: 'avx' });
// @ts-expect-error: an option that does not exist
await load({ wasm: true });

// Tensors: the type of the data is that of results.
const x: TensorLike<Float32Array> = { data: new Float32Array(6), shape: [1, 2, 3] };
const bits = { data: new Uint16Array(6), shape: [1, 2, 3], dtype: 'bfloat16' } as const;
const resident: Tensor<Float32Array> = attention.tensor(new Float32Array(6), [1, 2, 3]);
const zeros = attention.tensor(null, [2, 3] as const, 'float16');
const elements: Float32Array = resident.data;
const copy: Float32Array = resident.read();
const shape: readonly number[] = resident.shape;
const dtype: Dtype = zeros.dtype;
resident.dispose();
// @ts-expect-error: doubles are not accepted
attention.tensor(new Float64Array(6), [2, 3]);
// @ts-expect-error: a shape does not change
resident.shape[0] = 1;
// @ts-expect-error: plain data has no shape of its own
attention.scaledDotProductAttention(new Float32Array(6), x, x);

// Attention.
const mask: Mask = new Uint8Array(4);
const weightsWanted: NeedWeights = { heads: [0], rows: Int32Array.of(1), stage: 'masked' };
const attentionOptions: AttentionOptions = {
  isCausal: 'bottom-right',
  queryOffset: null,
  attnMask: { data: [true, false, true, true], shape: [2, 2] },
  scale: 1,
  softcap: 30,
  windowSize: [4, 0],
  alibiSlopes: true,
  sinks: new Float32Array(1),
  keyLengths: [2],
  needWeights: weightsWanted,
  returnLse: true,
  layout: 'bhtd',
};
const result: AttentionResult<Float32Array> = attention.scaledDotProductAttention(x, bits, resident, attentionOptions);
const output: Float32Array = result.output.data;
const lse: Float32Array | undefined = result.lse?.data;
const again = attention.scaledDotProductAttention(result.output, x, x, { attnMask: mask, out: resident });
const halves: Uint16Array = attention.scaledDotProductAttention(bits, x, x).output.data;
// @ts-expect-error: results have the type of q
const wrong: Float32Array = attention.scaledDotProductAttention(bits, x, x).output.data;
// @ts-expect-error: an alignment that does not exist
attention.scaledDotProductAttention(x, x, x, { isCausal: 'upper-left' });
// @ts-expect-error: an option that does not exist
attention.scaledDotProductAttention(x, x, x, { dropout: 0.1 });

const varlen: VarlenOptions = { cuSeqlensQ: [0, 1], cuSeqlensK: Int32Array.of(0, 1), needWeights: true };
const perSequence: Float32Array | undefined = attention.varlenAttention(x, x, x, varlen).weights?.[0]?.data;
// @ts-expect-error: sequences are needed
attention.varlenAttention(x, x, x, { isCausal: true });

const part = { output: result.output, lse: { data: new Float32Array(2), shape: [1, 2] } };
const merged: Result<Float32Array> = attention.mergeAttention([part, part], { sinks: new Float32Array(1) }).output;

// RoPE.
const scaling: RopeScaling = { rope_type: 'llama3', factor: 8, original_max_position_embeddings: 8192 };
const rope: RopeOptions = { style: 'half', base: 5e5, scaling, positions: { data: [0, 1], shape: [1, 2] } };
const turned: Float32Array = attention.rope(x, rope).data;
const { frequencies, attentionFactor } = ropeFrequencies({ rotaryDim: 8, scaling, sequenceLength: 9 });
const omega: Float64Array = frequencies;
const same: typeof ropeFrequencies = attention.ropeFrequencies;
const cos: Float32Array = attention.ropeTables({ rotaryDim: 8, length: 4, offset: 1 }).cos.data;
// @ts-expect-error: style is required
attention.rope(x, { offset: 1 });
// @ts-expect-error: rotaryDim is required
ropeFrequencies({ base: 10000 });

// Linear layers.
const weight = { data: new Float32Array(12), shape: [4, 3] };
const packed: PackedLinear = attention.packLinear(weight, new Float32Array(4));
const projected: Float32Array = attention.linear(x, packed, null, { out: null }).data;
attention.linear(x, weight, new Float32Array(4));

// The layer.
const layer: MultiHeadAttentionOptions = { dModel: 8, numHeads: 2, rope: { style: 'half' }, isCausal: true };
const mha: MultiHeadAttention = attention.multiHeadAttention(layer);
mha.loadStateDict({ in_proj_weight: weight, 'out_proj.weight': resident });
const state: Record<string, TensorLike> = mha.stateDict();
const forward: ForwardOptions = { context: { key: x, value: x }, needWeights: 'mean' };
const hidden: Float32Array = mha.forward(x, forward).output.data;
mha.dispose();
// @ts-expect-error: numHeads is required
attention.multiHeadAttention({ dModel: 8 });
// @ts-expect-error: the mask is called attnMask
mha.forward(x, { mask });

// The cache.
const kind: CacheDtype = 'q8_0';
const cacheOptions: KeyValueCacheOptions = { numKvHeads: 1, headDim: 32, capacity: 64, dtype: kind, window: 16 };
const cache: KeyValueCache = attention.keyValueCache(cacheOptions);
const append: AppendOptions = { lengths: [1], layout: 'bhtd' };
cache.append(x, resident, append);
const attend: AttendOptions = { isCausal: false, queryLengths: Int32Array.of(1), needWeights: true };
const attended: AttentionResult<Float32Array> = cache.attend(x, attend);
const counts: [number, Int32Array, number, Int32Array] = [cache.length, cache.lengths, cache.position, cache.positions];
const snapshot: CacheSnapshot = cache.snapshot();
cache.restore(snapshot);
cache.truncate([1]);
mha.forward(x, { cache });
cache.dispose();
// @ts-expect-error: the cache knows its lengths
cache.attend(x, { keyLengths: [1] });
// @ts-expect-error: a type that does not exist
attention.keyValueCache({ ...cacheOptions, dtype: 'q5_0' });

// Norms, activations, files.
const norm: LayerNormOptions = { weight: new Float32Array(3), bias: resident, epsilon: 1e-5 };
const normed: Float32Array = attention.layerNorm(x, norm).data;
const activated: Uint16Array = attention.silu(attention.gelu(bits, { approximate: 'tanh' }), { gate: x }).data;
const others = [attention.rmsNorm(x, { epsilon: 0 }), attention.softmax(x, { out: resident })];
const dict: Record<string, TensorLike> = readSafetensors(new ArrayBuffer(8), { skipUnsupported: true });
mha.loadStateDict(dict);
// @ts-expect-error: it has no bias
attention.rmsNorm(x, { bias: resident });

// Errors.
try {
  attention.linear(x, packed);
} catch (error) {
  if (error instanceof AttentionError) {
    const code: ErrorCode = error.code;
    const meaning: string = errorCodes[code];
    console.log(meaning, error.message, error.cause);
    // @ts-expect-error: a code that does not exist
    if (code === 'OOPS') throw error;
  }
}

// `using`, where the compiler knows it.
{
  using scratch = attention.tensor(null, [4]);
  console.log(
    scratch.disposed,
    scratch instanceof Tensor,
    packed instanceof PackedLinear,
    mha instanceof MultiHeadAttention,
  );
}
attention.dispose();

console.log(reasons, allocated, total, elements, copy, shape, dtype, output, lse, again, halves, wrong, perSequence);
console.log(merged, turned, attentionFactor, omega, same, cos, projected, state, hidden);
console.log(
  attended,
  counts,
  cache instanceof KeyValueCache,
  snapshot instanceof CacheSnapshot,
  normed,
  activated,
  others,
);
