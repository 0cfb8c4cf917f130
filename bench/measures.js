// What follows from times: rates, and fractions of what the machine can do.
import { flops, tensorBytes } from './workloads.js';

/** GFLOP/s. @param {import('./workloads.js').Workload} workload @param {number} ms */
export const rate = (workload, ms) => flops(workload) / ms / 1e6;

/**
 * The shortest time that the machine's own limits allow: all multiply-adds at the rate of the product loop, or all
 * tensors read once, whichever takes longer.
 * @param {Record<number, { mulAdd: number, madd: number, read: number }>} limits by threads
 * @param {boolean} relaxed whether the build may use relaxed_madd; without, its limit is that of two instructions
 */
export function shortestTime(workload, limits, threads, relaxed) {
  const { mulAdd, madd, read } = limits[threads];
  const multiplyAdd = relaxed ? Math.max(mulAdd, madd) : mulAdd;
  return Math.max(rate(workload, multiplyAdd), tensorBytes(workload) / read / 1e6);
}

/** The fraction of the limit that a contestant of ours reaches; null where it is none of ours, or not of float32. */
export function fraction(workload, limits, { ours, eightBit, options }, { minimum }) {
  if (!ours || eightBit || minimum === undefined) return null;
  return shortestTime(workload, limits, options.threads, options.simd === 'relaxed') / minimum;
}

/** Bytes of wasm memory that are neither inputs nor output. */
export const besides = (workload, { heap }) => (heap?.wasm ? heap.wasm - tensorBytes(workload) : undefined);
