// What a browser downloads for the first call: a minified bundle and the wasm that it fetches, each through gzip -9.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { projectRoot } from '../tools/machine.js';

const require = createRequire(import.meta.url);

/**
 * `code`: what a page writes. `files`: those of the bundle that are loaded, of the many that it may hold.
 * `wasm`: what is fetched beside it.
 */
const kPages = {
  ...Object.fromEntries(['baseline', 'relaxed', 'baseline-2t', 'relaxed-2t'].map((name) => [`ours-${name}`, ours(name)])),
  'ort-web': {
    code: `import * as ort from 'onnxruntime-web/wasm'; globalThis.run = ort;`,
    files: /\.js$/,
    wasm: () => join(require.resolve('onnxruntime-web'), '../ort-wasm-simd-threaded.wasm'),
  },
  jax: { code: `import { init, numpy, nn, jit } from '@jax-js/jax'; globalThis.run = [init, numpy, nn, jit];`, files: /^entry/ },
  tfjs: {
    code: `import { setBackend, tensor, matMul, softmax, mul } from '@tensorflow/tfjs-core';
      import '@tensorflow/tfjs-backend-wasm'; globalThis.run = [setBackend, tensor, matMul, softmax, mul];`,
    files: /\.js$/,
    wasm: () => join(require.resolve('@tensorflow/tfjs-backend-wasm'), '../tfjs-backend-wasm-simd.wasm'),
  },
};

function ours(name) {
  const build = name.replace('-2t', '-mt');
  return {
    code: `import { load } from ${JSON.stringify(join(projectRoot, 'bindings/index.js'))}; globalThis.run = load;`,
    files: new RegExp(`^(?!attention\\.)|^attention\\.${build}-[^-]*\\.js$`),
    wasm: () => join(projectRoot, `dist/attention.${build}.wasm`),
  };
}
