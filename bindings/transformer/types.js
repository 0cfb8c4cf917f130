// The public types of attention-wasm/transformer.

/** @import { AnyTensor, CacheDtype, Float32Result, Integers, TensorLike } from '../types.js' */
/** @import { TransformerCache } from './cache.js' */

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
 * @typedef {object} ForwardOptions
 * @property {TransformerCache | null} [cache]
 * @property {'last' | 'all' | null} [logits] of the last token, the default, or of all
 * @property {{ attention?: AttentionCapture | false | null, hidden?: boolean | null } | null} [capture]
 */

/**
 * @typedef {object} ForwardResult
 * @property {Float32Result} logits [1 or T, vocabulary]
 * @property {CapturedAttention[]} [attention]
 * @property {Float32Result[]} [hidden] [T, width] before the first layer and after each one; the final norm isn't in them
 */

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
 * @property {AbortSignal | null} [signal]
 * @property {((step: GeneratedToken) => void) | null} [onToken] called before the stream gives the token
 */

/** @typedef {{ token: number, logits: Float32Result }} GeneratedToken */

export {};
