// The types of an instance that may run on webgpu: the functions of `Attention` with promises of what they return there.
//
// Mode 'webgpu': loaded with that backend. Mode 'auto': whichever came up, so that `await` is needed for both.

/** @import { AnyTensor, AppendOptions, AttendOptions, AttentionOptions, AttentionResult, Capabilities, Dtype, Float32Result, ForwardOptions, GeluOptions, Info, Integers, KeyValueCacheOptions, LayerNormOptions, MemoryUsage, MergeOptions, MultiHeadAttentionOptions, OutOption, Result, RmsNormOptions, RopeOptions, RopeTableOptions, SiluOptions, TensorData, TensorLike, VarlenOptions, VarlenResult, Vector } from './types.js' */
/** @import { CacheSnapshot, KeyValueCache } from './key-value-cache.js' */
/** @import { MultiHeadAttention } from './multi-head-attention.js' */
/** @import { PackedLinear, Tensor } from './tensor.js' */

/** @typedef {'webgpu' | 'auto'} Mode */

/**
 * @template R
 * @template {Mode} M
 * @typedef {M extends 'webgpu' ? Promise<R> : R | Promise<R>} Reply
 */

/**
 * @template {TensorData} T
 * @template {Mode} M
 * @typedef {{ read(): Reply<T, M> } & Tensor<T>} TensorOn
 */

/**
 * @template {Mode} M
 * @typedef {{
 *   append(k: TensorLike | AnyTensor, v: TensorLike | AnyTensor, options?: AppendOptions | null): Reply<void, M>,
 *   attend<T extends TensorData = Float32Array>(q: TensorLike<T> | Tensor<T>, options?: AttendOptions | null): Reply<AttentionResult<T>, M>,
 *   truncate(n: number | Integers): Reply<void, M>,
 *   clear(): Reply<void, M>,
 *   snapshot(): Reply<CacheSnapshot, M>,
 *   restore(snapshot: CacheSnapshot): Reply<void, M>,
 * } & KeyValueCache} KeyValueCacheOn
 */

/**
 * @template {Mode} M
 * @typedef {{
 *   loadStateDict(dict: Readonly<Record<string, TensorLike | AnyTensor>>): Reply<void, M>,
 *   stateDict(): Reply<Record<string, TensorLike>, M>,
 *   forward<T extends TensorData = Float32Array>(x: TensorLike<T> | Tensor<T>, options?: ForwardOptions | null): Reply<{ output: Result<T>, weights?: Float32Result }, M>,
 * } & MultiHeadAttention} MultiHeadAttentionOn
 */

/**
 * What load() gives for backend 'webgpu' or 'auto'. Arguments, results and errors are those of `Attention`; errors are
 * rejections. Calls run in the order they are made, whether or not they are awaited in between; a result that goes to
 * a resident tensor is read back only by its read().
 * @template {Mode} M
 * @typedef {object} AttentionOn
 * @property {Readonly<Info>} info what came up, and why not better; another object after a loss of the device
 * @property {() => Capabilities} capabilities
 * @property {unknown} device on webgpu the GPUDevice that calls run on; else null
 * @property {MemoryUsage} memory
 * @property {<T extends TensorData = Float32Array>(data: T | null, shape: readonly number[], dtype?: Dtype | null) => Reply<TensorOn<T, M>, M>} tensor
 * @property {<T extends TensorData = Float32Array>(q: TensorLike<T> | Tensor<T>, k: TensorLike | AnyTensor, v: TensorLike | AnyTensor, options?: AttentionOptions | null) => Reply<AttentionResult<T>, M>} scaledDotProductAttention
 * @property {<T extends TensorData = Float32Array>(q: TensorLike<T> | Tensor<T>, k: TensorLike | AnyTensor, v: TensorLike | AnyTensor, options: VarlenOptions) => Reply<VarlenResult<T>, M>} varlenAttention
 * @property {<T extends TensorData = Float32Array>(parts: readonly { output: TensorLike<T> | Tensor<T>, lse: TensorLike | AnyTensor }[], options?: MergeOptions | null) => Reply<{ output: Result<T>, lse: Float32Result }, M>} mergeAttention
 * @property {<T extends TensorData = Float32Array>(x: TensorLike<T> | Tensor<T>, options: RopeOptions) => Reply<Result<T>, M>} rope
 * @property {(options: RopeTableOptions) => Reply<{ cos: Float32Result, sin: Float32Result }, M>} ropeTables
 * @property {typeof import('./rope-frequencies.js').ropeFrequencies} ropeFrequencies
 * @property {<T extends TensorData = Float32Array>(x: TensorLike<T> | Tensor<T>, weight: TensorLike | AnyTensor | PackedLinear, bias?: Vector | null, options?: { residual?: TensorLike | AnyTensor | null, out?: AnyTensor | null } | null) => Reply<Result<T>, M>} linear
 * @property {(weight: TensorLike | AnyTensor, bias?: Vector | null) => Reply<PackedLinear, M>} packLinear
 * @property {(options: MultiHeadAttentionOptions) => Reply<MultiHeadAttentionOn<M>, M>} multiHeadAttention
 * @property {(options: KeyValueCacheOptions) => Reply<KeyValueCacheOn<M>, M>} keyValueCache
 * @property {<T extends TensorData = Float32Array>(x: TensorLike<T> | Tensor<T>, options?: RmsNormOptions | null) => Reply<Result<T>, M>} rmsNorm
 * @property {<T extends TensorData = Float32Array>(x: TensorLike<T> | Tensor<T>, options?: LayerNormOptions | null) => Reply<Result<T>, M>} layerNorm
 * @property {<T extends TensorData = Float32Array>(x: TensorLike<T> | Tensor<T>, options?: OutOption | null) => Reply<Result<T>, M>} softmax
 * @property {<T extends TensorData = Float32Array>(x: TensorLike<T> | Tensor<T>, options?: GeluOptions | null) => Reply<Result<T>, M>} gelu
 * @property {<T extends TensorData = Float32Array>(x: TensorLike<T> | Tensor<T>, options?: SiluOptions | null) => Reply<Result<T>, M>} silu
 * @property {() => void} dispose lets go of all memory, and of the device unless the caller gave it
 */

export {};
