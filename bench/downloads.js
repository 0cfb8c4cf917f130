// What a browser downloads for the first call: minified JavaScript and wasm, each file through gzip -9.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { projectRoot } from '../tools/machine.js';

const require = createRequire(import.meta.url);

/**
 * `code`: what a page would write. `isLoaded`: of the files that the bundler makes, those that the first call needs beside
 * what the page imports.
 * `beside`: a file that the bundler doesn't see.
 * @typedef {{ code: string, isLoaded: (file: string) => boolean, beside?: () => string }} Page
 */

/** @type {Record<string, Page>} */
const kPages = {
  'ours-baseline': ours('baseline'),
  'ours-relaxed': ours('relaxed'),
  'ours-baseline-2t': ours('baseline-mt'),
  'ours-relaxed-2t': ours('relaxed-mt'),
  'ort-web': {
    code: `import * as ort from 'onnxruntime-web/wasm'; globalThis.used = ort;`,
    isLoaded: () => true,
  },
  jax: {
    code: `import { init, jit, nn, numpy } from '@jax-js/jax'; globalThis.used = { init, jit, nn, numpy };`,
    isLoaded: (file) => file === 'entry.js', // the others are for GPUs
  },
  tfjs: {
    code: `import { matMul, mul, ready, setBackend, softmax, tensor, tidy } from '@tensorflow/tfjs-core';
      import '@tensorflow/tfjs-backend-wasm';
      globalThis.used = { matMul, mul, ready, setBackend, softmax, tensor, tidy };`,
    isLoaded: () => true,
    beside: () => join(require.resolve('@tensorflow/tfjs-backend-wasm'), '../tfjs-backend-wasm-simd.wasm'),
  },
};

/** @param {string} name of a build */
function ours(name) {
  return {
    code: `import { load } from ${JSON.stringify(join(projectRoot, 'dist/index.js'))}; globalThis.used = load;`,
    isLoaded: (file) => file === `asset-attention.${name}.wasm` || (name.endsWith('-mt') && file.includes('threads')),
  };
}

/** @param {string[]} ids of contestants @returns {Promise<Record<string, number>>} bytes; none for those without a page */
export async function downloads(ids) {
  /** @type {Record<string, number>} */
  const bytes = {};
  for (const id of ids) if (kPages[id]) bytes[id] = await download(kPages[id]);
  return bytes;
}

/** @param {Page} page */
async function download({ code, isLoaded, beside }) {
  const kEntry = join(import.meta.dirname, 'entry.virtual.js');
  const result = await build({
    configFile: false,
    root: import.meta.dirname,
    logLevel: 'error',
    plugins: [
      { name: 'entry', resolveId: (id) => (id === kEntry ? id : null), load: (id) => (id === kEntry ? code : null) },
    ],
    build: {
      write: false,
      rollupOptions: {
        input: { entry: kEntry },
        output: {
          entryFileNames: '[name].js',
          chunkFileNames: 'chunk-[name].js',
          assetFileNames: 'asset-[name][extname]',
        },
      },
    },
  });
  const files = [result].flat().flatMap(({ output }) => output);
  const imported = new Set(['entry.js']);
  for (const name of imported) for (const next of chunkOf(files, name).imports) imported.add(next);
  const contents = files
    .filter(({ fileName }) => imported.has(fileName) || isLoaded(fileName))
    .map((file) => file.code ?? file.source);
  if (beside) contents.push(readFileSync(beside()));
  return contents.reduce((sum, content) => sum + gzipSync(content, { level: 9 }).length, 0);
}

/** A chunk by its name. */
const chunkOf = (files, name) => files.find(({ fileName }) => fileName === name);
