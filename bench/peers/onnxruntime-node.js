// The native runtime in Node: the mark that wasm is measured against. Not a peer in the browser.
import { createSession, waysOf } from './onnxruntime.js';

export const ways = waysOf;

export async function create(workload, inputs, { threads, way }) {
  const ort = await import('onnxruntime-node');
  const sessionOptions = { executionProviders: ['cpu'], intraOpNumThreads: threads, interOpNumThreads: 1 };
  return createSession(ort, workload, inputs, way, sessionOptions);
}
