import { fileURLToPath } from 'node:url';
import { formulas } from './formulas.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

export default {
  root: here('.'),
  plugins: [formulas()],
  base: './', // the built folder works from any path of any host
  resolve: {
    alias: {
      'attention-wasm/safetensors': here('../bindings/safetensors.js'),
      'attention-wasm/transformer': here('../bindings/transformer.js'),
      'attention-wasm': here('../bindings/index.js'),
    },
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  worker: { format: 'es' },
  build: {
    outDir: here('../build/page'),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0, // wasm as files: they compile while they stream
    modulePreload: { polyfill: false },
  },
  server: {
    fs: { allow: [here('..')] },
    headers: { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' },
  },
};
