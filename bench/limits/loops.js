// The loops of limits.cpp, run for some milliseconds each.
import { readFileSync } from 'node:fs';
import { moduleFile } from './build.js';

const kPage = 65536;
const kSlice = 1; // ms: the best of such slices counts, so that a pause does not

/**
 * @param {number} bytes how much memory the reading loop walks through
 * @returns {Record<'mulAdd' | 'madd' | 'read', (ms: number) => number>} GFLOP/s with two instructions and with one, GB/s
 */
export function loops(bytes) {
  const baseline = instance('baseline');
  const data = grow(baseline.memory, bytes);
  const product = ({ matrix_product, matrix_product_flops }) => {
    const repeats = Math.ceil((kSlice * 2e7) / matrix_product_flops()); // a slice at 20 GFLOP/s, less on a faster machine
    return (ms) => best(ms, matrix_product_flops() * repeats, () => matrix_product(repeats));
  };
  const vectors = Math.floor(bytes / 128) * 8;
  return {
    mulAdd: product(baseline),
    madd: product(instance('relaxed')),
    read: (ms) => best(ms, vectors * 16, () => baseline.read(data, vectors)),
  };
}

function instance(name) {
  const module = new WebAssembly.Module(readFileSync(moduleFile(name)));
  const unused = Object.fromEntries(WebAssembly.Module.imports(module).map(({ name: import_ }) => [import_, () => 0]));
  const imports = Object.fromEntries(WebAssembly.Module.imports(module).map(({ module: from }) => [from, unused]));
  const { exports } = new WebAssembly.Instance(module, imports);
  exports._initialize?.();
  exports.prepare();
  return exports;
}

/** New pages at the end, written once: untouched ones would all be the same page of zeros. @returns their address */
function grow(memory, bytes) {
  const address = memory.grow(Math.ceil(bytes / kPage)) * kPage;
  new Uint8Array(memory.buffer, address, bytes).fill(1);
  return address;
}

/** The best rate of a call within `ms`, in units of 1e9 a second. */
function best(ms, work, call) {
  const end = performance.now() + ms;
  let shortest = Number.POSITIVE_INFINITY;
  let start = performance.now();
  do {
    call();
    const now = performance.now();
    shortest = Math.min(shortest, now - start);
    start = now;
  } while (start < end);
  return work / shortest / 1e6;
}
