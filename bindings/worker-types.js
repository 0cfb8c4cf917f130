// The public types of attention-wasm/worker.

/** @import { LoadOptions, TensorData, TensorLike } from './types.js' */
/** @import { WorkerKeyValueCache, WorkerTensor } from './worker-objects.js' */
/** @import { WorkerTransformerCache } from './worker-transformer.js' */

/**
 * How far a long call has come: slices of its running step that are done.
 * @typedef {object} Progress
 * @property {'attention' | 'linear'} step
 * @property {number} done
 * @property {number} total
 */

/**
 * Options that every call in a worker takes beside its own.
 * @typedef {object} CallOptions
 * @property {AbortSignal | null} [signal] stops the call; its promise rejects with ABORTED within 100 ms, and what the
 *   call held is free by then; on webgpu when the GPU is through with it
 * @property {((progress: Progress) => void) | null} [onProgress] told of every slice of a long attention or linear call;
 *   on webgpu there are none
 * @property {boolean | null} [transfer] moves the buffers of the arguments to the worker instead of copying them: the
 *   caller's arrays are empty from then on. false by default
 */

/**
 * Options of a function, with objects of the worker in place of resident ones, and those of every call beside them.
 * @template O
 * @typedef {{ [K in keyof O]: K extends 'out' ? WorkerTensor | null : K extends 'cache' ? WorkerKeyValueCache | null : O[K] | WorkerTensor } & CallOptions} InWorker
 */

/**
 * Options of a function of a model, with a cache in the worker, and those of every call beside them.
 * @template O
 * @typedef {Omit<O, 'cache' | 'signal'> & { cache?: WorkerTransformerCache | null } & CallOptions} OnModel
 */

/**
 * A tensor argument: plain data, or a tensor in the worker.
 * @template {TensorData} [T=TensorData]
 * @typedef {TensorLike<T> | WorkerTensor} RemoteTensorLike
 */

/**
 * @typedef {object} OwnWorkerOptions
 * @property {(() => any) | null} [createWorker] makes the worker where the bundler doesn't see the package's own
 *   (esbuild, Rollup without a plugin): a module worker, or in Node a Worker of node:worker_threads, whose file calls
 *   `serveWorker()` of attention-wasm/worker-host
 * @property {AbortSignal | null} [signal] gives loading up
 */

/** How to load in a worker. @typedef {LoadOptions & OwnWorkerOptions} WorkerLoadOptions */

export {};
