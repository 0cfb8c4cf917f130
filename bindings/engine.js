// What kind of engine this is.

export const isNode = () => typeof process === 'object' && typeof process.versions?.node === 'string';

/** Node's own modules, out of sight of bundlers for browsers. @param {string} name */
export const nodeModule = (name) => import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${name}`);

// Features, found by a module that uses them. Not by a library: in a worker without a bundler nothing tells where the
// name of a package leads, because import maps don't reach there.

/** @param {number[]} sections */
export const isValid = (...sections) =>
  WebAssembly.validate(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...sections));

/** One function without parameters, that returns a vector. */
const kVector = [1, 5, 1, 0x60, 0, 1, 0x7b, 3, 2, 1, 0];

/** i8x16.popcnt, one of the last instructions that came into plain SIMD. */
export const hasSimd = () => isValid(...kVector, 10, 10, 1, 8, 0, 0x41, 0, 0xfd, 15, 0xfd, 98, 11);

/** i8x16.relaxed_swizzle */
export const hasRelaxedSimd = () =>
  isValid(...kVector, 10, 15, 1, 13, 0, 0x41, 1, 0xfd, 15, 0x41, 2, 0xfd, 15, 0xfd, 128, 2, 11);
