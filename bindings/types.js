// The public types. Letters: B batch, H query heads, Hkv key/value heads, Tq and Tk query and key length, D query/key
// head size, Dv value head size. Tensors are row-major.

/** @typedef {import('./tensor.js').Tensor} AnyTensor */
/** @typedef {import('./key-value-cache.js').KeyValueCache} KeyValueCache */

/** @typedef {import('./errors.js').ErrorCode} ErrorCode */

/** Element types of tensors. Sums are in float32 whatever the type. @typedef {'float32' | 'float16' | 'bfloat16'} Dtype */

/**
 * A Float16Array, described by its form so that these types don't need an engine or a compiler that has it.
 * @typedef {ArrayBufferView & {
 *   readonly [Symbol.toStringTag]: 'Float16Array',
 *   readonly BYTES_PER_ELEMENT: number,
 *   readonly length: number,
 *   [index: number]: number,
 *   slice(start?: number, end?: number): any,
 *   subarray(start?: number, end?: number): any,
 *   set(values: ArrayLike<number>, offset?: number): void,
 *   fill(value: number, start?: number, end?: number): any,
 * }} Float16Data
 */

/** What tensors hold: float32 values, float16 values, or the bits of float16 or bfloat16. @typedef {Float32Array | Uint16Array | Float16Data} TensorData */

/**
 * Plain data with a shape. `dtype` is needed for bfloat16 only: a Uint16Array holds float16 bits unless it says so.
 * @template {TensorData} [T=TensorData]
 * @typedef {{ data: T, shape: readonly number[], dtype?: Dtype }} TensorLike
 */

/**
 * A result: fresh data that belongs to the caller, or the resident tensor that was given as `out`. It can be passed on
 * as a TensorLike as it is.
 * @template {TensorData} [T=TensorData]
 * @typedef {{ readonly data: T, readonly shape: readonly number[], readonly dtype: Dtype }} Result
 */

/** @typedef {Result<Float32Array> & { shape: number[] }} Float32Result */

/** A list of integers. @typedef {readonly number[] | Int32Array | Uint32Array | Int16Array | Uint16Array | Int8Array | Uint8Array} Integers */

/**
 * How to load.
 * @typedef {object} LoadOptions
 * @property {'wasm' | 'webgpu' | 'auto'} [backend] 'wasm' by default; 'auto' takes webgpu where there is an adapter
 * @property {'auto' | 'relaxed' | 'baseline' | 'scalar'} [simd] the best that the engine has, by default
 * @property {number | 'auto'} [threads] by default one for each core where memory can be shared (Node; pages that are
 *   cross-origin isolated), else 1
 * @property {string | URL} [wasmUrl] where the binary is, if the bundler can't tell: a file, or a folder (with a slash
 *   at its end) that holds the files of dist/ under their own names
 * @property {ArrayBuffer | ArrayBufferView} [wasmBinary] the binary itself; it must be that of the build that is loaded, so set `simd`
 *   and `threads` too
 * @property {unknown} [device] a GPUDevice for webgpu; used, and never destroyed by the package
 */

/**
 * What came up, and why not better.
 * @typedef {object} Info
 * @property {string} version
 * @property {'wasm' | 'webgpu'} backend
 * @property {'relaxed' | 'baseline' | 'scalar' | 'none'} simd 'none' on webgpu
 * @property {number} threads 0 on webgpu
 * @property {string} [adapter] webgpu: the name of the adapter
 * @property {string[]} reasons
 */

/**
 * What the backend that came up can't do, and what it uses.
 * @typedef {object} Capabilities
 * @property {'wasm' | 'webgpu'} backend
 * @property {Readonly<Record<string, string>>} unsupported what isn't there, and why
 * @property {CacheDtype[]} cacheDtypes types that a key/value cache may have
 * @property {boolean} float16 whether the device computes in float16 where tensors are; sums are in float32 in any case
 * @property {boolean} subgroups whether threads of the device exchange values directly
 */

/**
 * Memory of the wasm module, in bytes.
 * @typedef {object} MemoryUsage
 * @property {number} allocated held by resident tensors, packed weights and the module itself; the same before and
 *   after a plain call
 * @property {number} total what the module has taken from the engine; it never shrinks
 */

/**
 * A mask. Boolean data (Uint8Array or boolean[]): non-zero = attend. Float data: added to the logits, where −∞ blocks.
 * With a shape it broadcasts from the right to [B,H,Tq,Tk] (also in layout 'bthd'), so [H,Tq,Tk] is rank 3; bare data
 * must have Tq·Tk elements.
 * @typedef {Uint8Array | readonly boolean[] | TensorData | TensorLike | { data: Uint8Array | readonly boolean[], shape: readonly number[] } | AnyTensor} Mask
 */

/**
 * Which attention weights to return. `true`: [B,H,Tq,Tk]. `'mean'`: the mean over heads, [B,Tq,Tk]. An object: those
 * heads and rows only, [B, heads.length, rows.length, Tk], at a cost of O(rows·Tk) in memory; with `mean`, their mean
 * over heads. Where q has rank 3 or 2, B (and H) are missing here as well.
 *
 * `stage` takes the logits on their way instead: 'scores' is scale·⟨q,k⟩, 'capped' after the softcap, 'masked' after
 * bias and masks (hidden keys −∞), 'weights' after the softmax.
 * @typedef {boolean | 'mean' | { heads?: Integers | null, rows?: Integers | null, mean?: boolean, stage?: 'scores' | 'capped' | 'masked' | 'weights' }} NeedWeights
 */

/**
 * Options that attention over a batch and over packed sequences share. `undefined` and `null` mean the default.
 * @typedef {object} SharedAttentionOptions
 * @property {boolean | 'top-left' | 'bottom-right' | null} [isCausal] false by default. Key j is visible to query i iff
 *   j ≤ i + offset. 'top-left': offset 0. 'bottom-right': offset Tk − Tq, or key length − query length of the item.
 *   true: only where both agree, or with `queryOffset`; else INVALID_OPTION
 * @property {number | Integers | null} [queryOffset] position of query row 0 among the keys, for all or for each item;
 *   in place of an alignment; may be negative; at most 2²⁹ in size
 * @property {Mask | null} [attnMask]
 * @property {'float32' | 'int8' | null} [precision] how queries and keys are multiplied; 'float32' by default. 'int8'
 *   takes 7 bits of each, with a scale for each token: for normal queries, keys and values the outputs are off by 3e-3
 *   (root of the mean square), by 7e-3 where a channel stands out, by 4e-2 where logits spread by 9 and one key takes
 *   most of the weight. Only in the relaxed build, else UNSUPPORTED; calls with fewer than 8 query rows, and
 *   weights, are float32 all the same
 * @property {number | null} [scale] 1/√D by default; 0 is 0
 * @property {number | null} [softcap] c > 0: c·tanh(x/c); 0 = off, the default
 * @property {readonly [number, number] | null} [windowSize] [left, right]: keys besides the row's own that it sees on
 *   each side; −1 = open, the default. "A window of W keys including the own" is [W − 1, 0]
 * @property {boolean | Float32Array | TensorLike | AnyTensor | null} [alibiSlopes] true: the published slopes; or (H).
 *   Adds −slope·|p − j|
 * @property {Float32Array | TensorLike | AnyTensor | null} [sinks] (H): a logit in the softmax denominator only;
 *   neither scaled nor capped
 * @property {NeedWeights | null} [needWeights] false by default
 * @property {boolean | null} [returnLse] false by default; the natural log of the softmax denominator, sink included
 * @property {AnyTensor | null} [out] a resident tensor of the output's shape, of any type
 */

/**
 * @typedef {object} BatchAttentionOptions
 * @property {Integers | null} [queryLengths] (B) valid leading rows of each item; rows beyond are 0
 * @property {Integers | null} [keyLengths] (B) valid leading keys of each item; keys beyond are never read
 * @property {'bhtd' | 'bthd' | null} [layout] 'bthd' reads and writes rank 4 as [B,T,H,D]
 */

/** @typedef {SharedAttentionOptions & BatchAttentionOptions} AttentionOptions */

/**
 * @typedef {object} PackedSequences
 * @property {Integers} cuSeqlensQ (S + 1) sequence s is between cuSeqlens[s] and cuSeqlens[s + 1]; begins with 0 and
 *   ends with the number of tokens
 * @property {Integers} cuSeqlensK (S + 1)
 */

/** @typedef {SharedAttentionOptions & PackedSequences} VarlenOptions */

/**
 * @template {TensorData} [T=TensorData]
 * @typedef {object} AttentionResult
 * @property {Result<T>} output in the type of q: [B,H,Tq,Dv], or the rank and layout of q
 * @property {Float32Result} [weights] where `needWeights` asked for them
 * @property {Float32Result} [lse] where `returnLse` asked for it: [B,H,Tq], also in layout 'bthd'
 */

/**
 * @template {TensorData} [T=TensorData]
 * @typedef {object} VarlenResult
 * @property {Result<T>} output [ΣTq, H, Dv]
 * @property {Float32Result[]} [weights] one for each sequence: [H, Tq, Tk] of that sequence
 * @property {Float32Result} [lse] [H, ΣTq]
 */

/**
 * @typedef {object} MergeOptions
 * @property {Float32Array | TensorLike | AnyTensor | null} [sinks] (H), counted once for all parts
 * @property {AnyTensor | null} [out]
 */

/**
 * A Hugging Face `rope_scaling` object as it stands in config.json. `original_max_position_embeddings` and
 * `max_position_embeddings` may stand in it, or the latter beside it as `maxPositionEmbeddings`.
 * @typedef {object} RopeScaling
 * @property {string} [rope_type] 'default', 'linear', 'dynamic', 'yarn', 'longrope', 'llama3' or 'proportional'
 * @property {string} [type] the older name of `rope_type`; also 'su' (longrope) and 'mrope' (default, with mrope_section)
 * @property {number} [factor]
 * @property {number} [original_max_position_embeddings]
 * @property {number} [max_position_embeddings]
 * @property {number | null} [attention_factor]
 * @property {number} [beta_fast] yarn; 32 by default
 * @property {number} [beta_slow] yarn; 1 by default
 * @property {number} [mscale] yarn
 * @property {number} [mscale_all_dim] yarn
 * @property {boolean} [truncate] yarn; true by default
 * @property {boolean} [finetuned] without effect
 * @property {number[]} [short_factor] longrope, rotaryDim / 2 divisors
 * @property {number[]} [long_factor] longrope
 * @property {number} [short_mscale] longrope: the attention factor within the trained length
 * @property {number} [long_mscale] longrope: and beyond it
 * @property {number} [low_freq_factor] llama3; 1 by default
 * @property {number} [high_freq_factor] llama3; 4 by default
 * @property {number} [partial_rotary_factor] proportional: the share of pairs that turn; else rotaryDim / D
 * @property {number[]} [mrope_section] as `mropeSection`
 * @property {boolean} [mrope_interleaved] as `mropeInterleaved`
 * @property {number} [rope_theta] as `base`
 */

/**
 * Positions for each token: (T) for all items, or { data, shape: [B, T] }. With `mropeSection` { data, shape } of
 * [streams, T] or [streams, B, T]; (T) then stands for the same position in every stream.
 * @typedef {Integers | { data: Integers, shape: readonly number[] }} RopePositions
 */

/**
 * @typedef {object} RotationOptions
 * @property {number | null} [rotaryDim] channels that turn: even; all by default; those beyond pass unchanged
 * @property {number | null} [base] 10000 by default
 * @property {RopeScaling | null} [scaling]
 * @property {number | null} [maxPositionEmbeddings] from config.json, for scalings that need it
 * @property {number | null} [sequenceLength] for 'dynamic' and 'longrope': the length that decides; by default the
 *   largest position of each item plus one. Keys that were cached earlier keep their rotation, so give it to hold a
 *   sequence to one rotation
 * @property {Integers | null} [mropeSection] pairs that take each of three or four position streams
 * @property {boolean | null} [mropeInterleaved] the streams alternate instead of standing one after the other
 */

/**
 * @typedef {object} RopeCallOptions
 * @property {'interleaved' | 'half'} style which channels are a pair: (2i, 2i+1) as in GPT-J, or (i, i + rotaryDim/2)
 *   as in Hugging Face's LLaMA. Required, because a wrong one shows in nothing but worse results
 * @property {RopePositions | null} [positions]
 * @property {number | Integers | null} [offset] the position of token 0, for all or for each item; 0 by default
 * @property {{ cos: TensorLike<Float32Array> | AnyTensor, sin: TensorLike<Float32Array> | AnyTensor } | null} [tables] the
 *   caller's own, [T, rotaryDim / 2] or [B, T, rotaryDim / 2], in place of positions and all that frequencies come from
 * @property {boolean | null} [inverse] turns back (the transpose: an attention factor multiplies here as well)
 * @property {AnyTensor | null} [out] of the shape and type of x; may be x
 * @property {'bhtd' | 'bthd' | null} [layout]
 */

/** @typedef {RotationOptions & RopeCallOptions} RopeOptions */

/** @typedef {RotationOptions & { positions?: RopePositions | null, offset?: number | Integers | null, length?: number | null }} RopeTableOptions */

/**
 * Sizes and options of a multi-head attention layer.
 * @typedef {object} MultiHeadAttentionOptions
 * @property {number} dModel width of x and of the output
 * @property {number} numHeads
 * @property {number | null} [numKvHeads] divides numHeads; numHeads by default
 * @property {number | null} [headDim] dModel / numHeads by default, which must then be whole
 * @property {number | null} [kDim] width of what keys are made from; dModel by default
 * @property {number | null} [vDim] width of what values are made from; dModel by default
 * @property {boolean | null} [bias] whether the four projections have one; false by default
 * @property {boolean | 'top-left' | 'bottom-right' | null} [isCausal]
 * @property {LayerRope | null} [rope] rotates queries and keys; for self-attention only
 * @property {boolean | { epsilon?: number | null } | null} [qkNorm] an RMS norm of each head's queries and keys, before
 *   `rope`; epsilon 1e-6 by default. Its weights are `q_norm.weight` and `k_norm.weight`, of headDim numbers
 * @property {number | null} [scale] 1/√headDim by default
 * @property {number | null} [softcap]
 * @property {readonly [number, number] | null} [windowSize]
 * @property {boolean | Float32Array | null} [alibiSlopes]
 * @property {Float32Array | null} [sinks] (numHeads)
 */

/**
 * @typedef {object} LayerRope
 * @property {'interleaved' | 'half'} style
 * @property {number | null} [base]
 * @property {number | null} [rotaryDim]
 * @property {RopeScaling | null} [scaling]
 * @property {number | null} [maxPositionEmbeddings]
 * @property {Integers | null} [mropeSection]
 * @property {boolean | null} [mropeInterleaved]
 */

/**
 * @typedef {object} ForwardOptions
 * @property {TensorLike | AnyTensor | { key: TensorLike | AnyTensor, value: TensorLike | AnyTensor } | null} [context]
 *   what keys and values are made from, [B, Tk, kDim], or one tensor for each; x by default
 * @property {Mask | null} [attnMask] true = attend
 * @property {Integers | null} [keyLengths] (B) with `cache`: of x, whose tokens beyond are not appended
 * @property {RopePositions | null} [positions] of the tokens of x; by default 0, 1, 2, …, or on from the cache's position
 * @property {KeyValueCache | null} [cache] takes the keys and values of x; x then attends to all that it holds
 * @property {NeedWeights | null} [needWeights]
 * @property {AnyTensor | null} [out]
 */

/**
 * Element types of a key/value cache. int8 has a scale for each head and token; q8_0 and q4_0 are ggml's block formats,
 * with a float16 scale for each 32 channels. The output's error against float64, relative, for normally distributed
 * data and D = 64: float32 1e-6, float16 4e-4, bfloat16 3e-3, int8 and q8_0 1e-2, q4_0 0.12. Beside the last three,
 * queries and weights are rounded to 16 bits, which adds at most 2e-4.
 * @typedef {Dtype | 'int8' | 'q8_0' | 'q4_0'} CacheDtype
 */

/**
 * @typedef {object} KeyValueCacheOptions
 * @property {number | null} [batch] 1 by default
 * @property {number} numKvHeads
 * @property {number} headDim D; a multiple of 32 for q8_0 and q4_0
 * @property {number | null} [valueDim] Dv; headDim by default
 * @property {number} capacity tokens that an item has room for
 * @property {CacheDtype | null} [dtype] 'float32' by default
 * @property {number | null} [window] tokens that a row sees, its own among them; the cache is then a ring. Its capacity
 *   must be at least sinkTokens + window; each token more lets chunks be one longer, and truncate() go one further back
 * @property {number | null} [sinkTokens] first tokens that stay visible beside the window; 0 by default
 */

/**
 * @typedef {object} AppendOptions
 * @property {Integers | null} [lengths] (B) leading tokens of each item to append; all by default
 * @property {'bhtd' | 'bthd' | null} [layout] of k and v
 */

/**
 * @typedef {object} OwnAttendOptions
 * @property {boolean | 'top-left' | 'bottom-right' | null} [isCausal] true by default: the rows are the newest tokens,
 *   at the end of each item's keys ('bottom-right'); with `queryOffset`, where that says
 * @property {Integers | null} [queryLengths] (B) valid leading rows of each item: these are then the newest tokens
 * @property {'bhtd' | 'bthd' | null} [layout] of q and the output
 */

/** @typedef {Omit<SharedAttentionOptions, 'isCausal'> & OwnAttendOptions} AttendOptions */

/** @typedef {{ out?: AnyTensor | null }} OutOption where the result goes: a resident tensor of the shape of x, or x itself */

/** @typedef {Float32Array | TensorLike | AnyTensor} Vector */

/**
 * @typedef {object} RmsNormOptions
 * @property {Vector | null} [weight] (width) ones by default
 * @property {number | null} [epsilon] 1e-6 by default, as in most checkpoints of Hugging Face
 * @property {AnyTensor | null} [out] may be x
 */

/**
 * @typedef {object} LayerNormOptions
 * @property {Vector | null} [weight] (width) ones by default
 * @property {Vector | null} [bias] (width) zeros by default
 * @property {number | null} [epsilon] 1e-5 by default, as in PyTorch
 * @property {AnyTensor | null} [out] may be x
 */

/**
 * @typedef {object} GeluOptions
 * @property {'none' | 'tanh' | null} [approximate] 'none' by default, as in PyTorch
 * @property {AnyTensor | null} [out] may be x
 */

/**
 * @typedef {object} SiluOptions
 * @property {TensorLike | AnyTensor | null} [gate] of the shape of x
 * @property {AnyTensor | null} [out] may be x
 */

export {};
