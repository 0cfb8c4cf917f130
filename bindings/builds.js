// The files of dist/, written out so that bundlers see every one; only what is picked is fetched.

/** @import { Factory } from './wasm.js' */

/**
 * `glue`: the JavaScript that Emscripten makes. The binary is at `url`, or in the code as `text` (see inflate()).
 * @typedef {object} Build
 * @property {() => Promise<{ default: Factory }>} glue
 * @property {() => URL} [url]
 * @property {() => Promise<{ default: string }>} [text]
 * @property {() => URL} [worker] builds with threads
 */

/** @type {Readonly<Record<string, Build>>} */
export const kBuilds = {
  scalar: {
    glue: () => import('../dist/attention.scalar.js'),
    url: () => new URL('../dist/attention.scalar.wasm', import.meta.url),
  },
  baseline: {
    glue: () => import('../dist/attention.baseline.js'),
    url: () => new URL('../dist/attention.baseline.wasm', import.meta.url),
  },
  relaxed: {
    glue: () => import('../dist/attention.relaxed.js'),
    url: () => new URL('../dist/attention.relaxed.wasm', import.meta.url),
  },
  'baseline-mt': {
    glue: () => import('../dist/attention.baseline-mt.js'),
    url: () => new URL('../dist/attention.baseline-mt.wasm', import.meta.url),
    worker: () => new URL('../dist/attention.baseline-mt.worker.js', import.meta.url),
  },
  'relaxed-mt': {
    glue: () => import('../dist/attention.relaxed-mt.js'),
    url: () => new URL('../dist/attention.relaxed-mt.wasm', import.meta.url),
    worker: () => new URL('../dist/attention.relaxed-mt.worker.js', import.meta.url),
  },
};

/** For bundlers that leave the files behind, which is found out when one is missing. @type {Build} */
export const kCopy = {
  glue: kBuilds.baseline.glue,
  text: () => import('../dist/attention.baseline.text.js'),
};
