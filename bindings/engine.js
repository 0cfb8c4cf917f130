// What kind of engine this is.

export const isNode = () => typeof process === 'object' && typeof process.versions?.node === 'string';

/** Node's own modules, out of sight of bundlers for browsers. @param {string} name */
export const nodeModule = (name) => import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${name}`);

export async function coreCount() {
  if (isNode()) return /** @type {typeof import('node:os')} */ (await nodeModule('os')).availableParallelism();
  return globalThis.navigator?.hardwareConcurrency ?? 1;
}
