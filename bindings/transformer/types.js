// The public types of attention-wasm/transformer.

/** @import { Attention } from '../index.js' */
/** @import { AttentionOn, Mode, Reply } from '../promises.js' */
/** @import { Transformer } from '../transformer.js' */
/** @import { AnyTensor, CacheDtype, Float32Result, Integers, TensorLike } from '../types.js' */
/** @import { Tensor } from '../tensor.js' */
/** @import { TransformerCache, TransformerSnapshot } from './cache.js' */

/**
 * Weights: tensors by name, or the bytes of a safetensors file; or a list of these, for a model in several files.
 * @typedef {Readonly<Record<string, TensorLike | AnyTensor>> | ArrayBuffer | ArrayBufferView} WeightSource
 */

/** How far loading has come, in bytes of the weights, and the tensor that was last. @typedef {{ loaded: number, total: number, name: string }} LoadProgress */

/**
 * @typedef {object} TransformerOptions
 * @property {Readonly<Record<string, any>>} config the model's config.json as it stands
 * @property {WeightSource | readonly WeightSource[]} weights
 * @property {((progress: LoadProgress) => void) | null} [onProgress]
 * @property {AbortSignal | null} [signal]
 */

/**
 * @typedef {object} TransformerInfo
 * @property {string} modelType
 * @property {number} vocabulary
 * @property {number} width of the hidden states
 * @property {number} layers
 * @property {number} inner width of the MLP
 * @property {number} heads
 * @property {number} kvHeads
 * @property {number} headDim
 * @property {number | null} trainedLength as the config says it: RoPE goes on beyond, worse
 * @property {number | null} positions learned positions: no text can be longer; null for RoPE
 * @property {readonly Readonly<{ scale: number, windowSize: readonly [left: number, right: number] }>[]} attention of each
 *   layer, as the model was trained
 * @property {number} parameters
 */

/**
 * @typedef {object} TransformerCacheOptions
 * @property {number} capacity tokens that it has room for
 * @property {CacheDtype | null} [dtype] 'float32' by default
 */

/**
 * Attention weights to return: of all layers, heads and rows (tokens of this call), or of some.
 * @typedef {true | { layers?: Integers | null, heads?: Integers | null, rows?: Integers | null }} AttentionCapture
 */

/**
 * What a pass keeps besides the logits: attention weights; hidden states; queries, keys and values as the attention takes
 * them, normalised and turned.
 * @typedef {object} CaptureOptions
 * @property {AttentionCapture | false | null} [attention]
 * @property {boolean | null} [hidden]
 * @property {boolean | null} [queries] @property {boolean | null} [keys] @property {boolean | null} [values]
 */

/**
 * Another attention than the model was trained with, in all its layers; what is left out stays as it was trained. A
 * window takes the place of the model's own.
 * @typedef {object} AttentionOverrides
 * @property {boolean | null} [isCausal] false: a token sees those behind it, too, as far as the call or the cache has them
 * @property {number | null} [scale] of the products of queries and keys
 * @property {number | null} [temperature] 1 by default; the logits are divided by it, behind the cap
 * @property {number | null} [softcap] c·tanh(x / c); 0: off
 * @property {readonly [left: number, right: number] | null} [windowSize] as in `scaledDotProductAttention`
 * @property {boolean | null} [rope] false: queries and keys aren't turned; of no consequence in a model without RoPE
 */

/**
 * @typedef {object} ForwardOptions
 * @property {TransformerCache | null} [cache]
 * @property {'last' | 'all' | null} [logits] of the last token, the default, or of all
 * @property {CaptureOptions | null} [capture]
 * @property {AttentionOverrides | null} [attention]
 */

/**
 * What was captured, layer by layer. Of a call with a cache only what its own tokens gave is in it.
 * @typedef {object} Captured
 * @property {CapturedAttention[]} [attention]
 * @property {Float32Result[]} [hidden] [T, width] before the first layer and after each one; the final norm isn't in them
 * @property {Float32Result[]} [queries] [heads, T, headDim]
 * @property {Float32Result[]} [keys] [kvHeads, T, headDim]
 * @property {Float32Result[]} [values] [kvHeads, T, headDim]
 */

/** @typedef {{ logits: Float32Result } & Captured} ForwardResult `logits`: [1 or T, vocabulary] */

/**
 * @typedef {object} CapturedAttention
 * @property {number} layer
 * @property {number[]} heads
 * @property {number[]} rows
 * @property {Float32Result} weights [heads, rows, Tk], Tk counting what the cache held
 */

/**
 * @typedef {object} GenerateOptions
 * @property {number} maxTokens
 * @property {number | null} [temperature] 0, the default, takes the most probable token
 * @property {number | null} [topK] draws among so many most probable tokens
 * @property {number | null} [topP] draws among the fewest tokens that are so probable together; after topK
 * @property {number | null} [seed] 32 bits for mulberry32: the same seed draws the same tokens. Another one each time by
 *   default
 * @property {Integers | null} [stopTokens] the stream ends behind one of them; `eos_token_id` of the config by default
 * @property {TransformerCache | null} [cache]
 * @property {CaptureOptions | null} [capture] of each step: of the tokens that it reads, all given ones in the first, and
 *   then the one that was chosen last. Not with chosen rows of attention weights
 * @property {AttentionOverrides | null} [attention] as in forward()
 * @property {AbortSignal | null} [signal]
 * @property {((step: GeneratedToken) => void) | null} [onToken] called before the stream gives the token
 */

/** @typedef {{ token: number, logits: Float32Result } & Captured} GeneratedToken */

/**
 * A cache of a model on webgpu, or on whichever backend came up: with promises.
 * @template {Mode} M
 * @typedef {{
 *   truncate(n: number): Reply<void, M>,
 *   clear(): Reply<void, M>,
 *   snapshot(): Reply<TransformerSnapshot, M>,
 *   restore(snapshot: TransformerSnapshot): Reply<void, M>,
 * } & TransformerCache} TransformerCacheOn
 */

/**
 * A model on webgpu, or on whichever backend came up: with promises. generate() is the same on both.
 * @template {Mode} M
 * @typedef {{
 *   createCache(options: TransformerCacheOptions): Reply<TransformerCacheOn<M>, M>,
 *   forward(tokens: Integers, options?: ForwardOptions | null): Reply<ForwardResult, M>,
 *   logitLens(hidden: TensorLike | Tensor): Reply<Float32Result, M>,
 * } & Transformer} TransformerOn
 */

/**
 * The model that an instance loads.
 * @template A
 * @typedef {A extends Attention ? Transformer : A extends AttentionOn<'webgpu'> ? TransformerOn<'webgpu'> : TransformerOn<'auto'>} TransformerOf
 */

export {};
