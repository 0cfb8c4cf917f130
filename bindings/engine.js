// What kind of engine this is.

export const isNode = () => typeof process === 'object' && typeof process.versions?.node === 'string';

/** Node's own modules, out of sight of bundlers for browsers. @param {string} name */
export const nodeModule = (name) => import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${name}`);

export async function coreCount() {
  if (isNode()) return /** @type {typeof import('node:os')} */ (await nodeModule('os')).availableParallelism();
  return globalThis.navigator?.hardwareConcurrency ?? 1;
}

// Features, found by a module that uses them. Not by a library: in a worker without a bundler nothing tells where the
// name of a package leads, because import maps don't reach there.

/** @param {number[]} sections */
const isValid = (...sections) => WebAssembly.validate(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...sections));

/** One function without parameters, that returns a vector. */
const kVector = [1, 5, 1, 0x60, 0, 1, 0x7b, 3, 2, 1, 0];

/** i8x16.popcnt, one of the last instructions that came into plain SIMD. */
export const hasSimd = () => isValid(...kVector, 10, 10, 1, 8, 0, 0x41, 0, 0xfd, 15, 0xfd, 98, 11);

/** i8x16.relaxed_swizzle */
export const hasRelaxedSimd = () =>
  isValid(...kVector, 10, 15, 1, 13, 0, 0x41, 1, 0xfd, 15, 0x41, 2, 0xfd, 15, 0xfd, 128, 2, 11);

/** i32.atomic.load of a shared memory, which must also pass from one thread to another. */
export function hasThreads() {
  try {
    new MessageChannel().port1.postMessage(new SharedArrayBuffer(1));
  } catch {
    return false;
  }
  const memory = [1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 5, 4, 1, 3, 1, 1];
  return isValid(...memory, 10, 11, 1, 9, 0, 0x41, 0, 0xfe, 16, 2, 0, 26, 11);
}
