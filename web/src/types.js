// What passes between the page and the worker that computes.

/** @typedef {readonly [layer: number, head: number]} HeadName */

/** What a row may see: no later token under the causal mask, and so many tokens to each side; −1: all. @typedef {{ causal: boolean, left: number, right: number }} Rule */

/**
 * One run of a model over a text. Its weights stay with the worker: the page asks for the matrix that it shows.
 * @typedef {object} Run
 * @property {string[]} tokens as they are shown
 * @property {number[]} ids in the model's vocabulary; empty for the layer without one
 * @property {number} prompt how many of the tokens are the text's; the model has written those behind them
 * @property {number} total how many tokens the text has, those left out among them
 * @property {number} layers
 * @property {number} heads
 * @property {boolean} causal whether all layers have the causal mask
 * @property {Rule[]} rules of each layer
 * @property {boolean} changed whether it differs from the model as it was trained
 * @property {number} milliseconds that the kernels took; 0 for the stored example
 * @property {BuildInfo} [build] what computed it
 * @property {{ first: number, second: number, difference: number } | null} [twins] two equal tokens of the untrained
 *   layer, and by how much their rows differ in any head
 * @property {{ x: Tensor, output: Tensor, stateDict: Record<string, Tensor>, config: Record<string, any> }} [layer] what the
 *   untrained layer took and gave: enough to compute it elsewhere
 */

/**
 * The attention that a reader asks for in place of what the model was trained with.
 * @typedef {object} WhatIf
 * @property {boolean} mask the causal one
 * @property {number} scale times the model's own
 * @property {number} temperature of the softmax
 * @property {boolean} rotary whether RoPE turns queries and keys
 * @property {number} softcap 0: off
 * @property {number} window tokens besides its own that a row sees to each side it may look to; −1: all
 */

/**
 * What of a run is shown as one matrix.
 * @typedef {object} MatrixView
 * @property {'one' | 'mean' | 'max' | 'rollout'} combine
 * @property {readonly HeadName[]} of the heads that are combined; one for 'one', and none of consequence for 'rollout'
 * @property {'weights' | 'scores' | 'change'} show
 * @property {boolean} hideFirst leaves the first token out and brings each row back to a sum of 1
 * @property {number} mass keeps the fewest weights of a row that reach this share together; 1: all
 * @property {number} from the first row
 */

/**
 * Rows of weights, scores or differences; no number where a rule hides the key or the view leaves it out.
 * @typedef {object} Matrix
 * @property {Float32Array} data [rows, columns]
 * @property {number} from the token of the first row
 * @property {number} columns
 * @property {Rule} rule
 * @property {number} extreme the largest magnitude
 */

/** Thumbnails of a layer: for each head the largest weights of [side, side] tiles. @typedef {{ layer: number, side: number, data: Float32Array }} Thumbnails */

/** The likeliest tokens if the model ended behind a layer; 0: before the first. @typedef {{ layer: number, tokens: { token: string, id: number, probability: number }[] }} LensLayer */

/** @typedef {{ data: Float32Array, shape: readonly number[] }} Tensor */

/** A token that may come next: its probability of the model as it is, and as it was changed. @typedef {{ token: string, id: number, before: number, after: number }} Candidate */

/**
 * Averages over the probes, each [layers][heads].
 * @typedef {object} HeadScores
 * @property {number[][]} previous attention to the token before, on random runs
 * @property {number[][]} induction from a token of the second run to the one after its first occurrence
 * @property {number[][]} itself attention to the token itself, on prose
 * @property {number[][]} first attention to the first token, on prose
 */

/**
 * What the model does on the probes, with some heads off.
 * @typedef {object} Effect
 * @property {number} copying share of the tokens of a repeated random run that are predicted
 * @property {number} copied of how many tokens
 * @property {number | null} loss nats per token of held-out prose
 * @property {number} lossTokens
 */

/** @typedef {'wasm' | 'webgpu'} BackendName */

/** What computes; `bytes` of its memory are in use. @typedef {{ version: string, backend: string, simd: string, threads: number, adapter?: string, reasons: readonly string[], bytes: number }} BuildInfo */

/**
 * @typedef {object} ModelInfo
 * @property {string} name
 * @property {number} layers
 * @property {number} heads
 * @property {number} kvHeads
 * @property {number} width
 * @property {number} vocabulary
 * @property {number} parameters
 * @property {number} longest tokens that the page gives it
 * @property {number | null} trainedLength
 * @property {number | null} headDim
 * @property {readonly { scale: number, windowSize: readonly [number, number] }[]} attention of each layer, as it was trained
 * @property {boolean} hasRope
 * @property {number} fileBytes
 * @property {number} memoryBytes of the weights as the kernels hold them
 */

/** @typedef {{ stage: string, loaded: number, total: number }} Progress */

export {};
