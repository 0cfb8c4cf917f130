// What passes between the page and the worker that computes.

/** @typedef {readonly [layer: number, head: number]} HeadName */

/**
 * One run of a model over a text.
 * @typedef {object} Run
 * @property {string[]} tokens as they are shown
 * @property {number[]} ids in the model's vocabulary; empty for the layer without one
 * @property {number} total how many tokens the text has, those left out among them
 * @property {number} layers
 * @property {number} heads
 * @property {boolean} causal
 * @property {Float32Array} weights [layers, heads, T, T]
 * @property {number} milliseconds that the kernels took; 0 for the stored example
 * @property {{ x: Tensor, output: Tensor, stateDict: Record<string, Tensor>, config: Record<string, any> }} [layer] what the
 *   untrained layer took and gave: enough to compute it elsewhere
 */
/** @typedef {{ data: Float32Array, shape: readonly number[] }} Tensor */

/** A token that may come next: its probability with all heads, and with those that are on. @typedef {{ token: string, id: number, before: number, after: number }} Candidate */

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

/** @typedef {{ version: string, backend: string, simd: string, threads: number, reasons: readonly string[] }} BuildInfo */

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
 * @property {number} fileBytes
 * @property {number} memoryBytes of the weights as the kernels hold them
 */

/** @typedef {{ stage: string, loaded: number, total: number }} Progress */

export {};
