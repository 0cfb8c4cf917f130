import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { formulas } from './formulas.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Writes the service worker, with the names of all files of the build in it. */
const offline = {
  name: 'offline',
  apply: 'build',
  generateBundle(_, bundle) {
    const files = [
      ...Object.keys(bundle).filter((name) => name !== 'index.html'),
      ...readdirSync(here('public')),
    ].sort();
    const hash = createHash('sha256');
    for (const name of files) {
      const { code, source } = bundle[name] ?? { source: readFileSync(here(`public/${name}`)) };
      hash
        .update(name)
        .update('\0')
        .update(code ?? source);
    }
    const page = readFileSync(here('index.html'));
    const built = {
      version: hash.update(page).digest('hex').slice(0, 16),
      files: ['./', ...files.map((name) => `./${name}`)],
    };
    const script = readFileSync(here('service-worker.js'), 'utf8').replace('self.__BUILT__', JSON.stringify(built));
    this.emitFile({ type: 'asset', fileName: 'sw.js', source: script });
  },
};

export default {
  root: here('.'),
  base: './', // the built folder works from any path of any host
  plugins: [formulas(), offline],
  resolve: {
    alias: {
      'attention-wasm/safetensors': here('../dist/safetensors.js'),
      'attention-wasm/transformer': here('../dist/transformer.js'),
      'attention-wasm': here('../dist/index.js'),
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
