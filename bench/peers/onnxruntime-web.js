// onnxruntime-web's wasm backend. It copies every input into its memory, and the output out of it, on each call.
import { createSession, waysOf } from './onnxruntime.js';

export const ways = waysOf;

export async function create(workload, inputs, { threads, way }) {
  const ort = await import('onnxruntime-web');
  ort.env.wasm.numThreads = threads;
  return createSession(ort, workload, inputs, way, { executionProviders: ['wasm'] });
}
