// npm run docs: the reference has a page for every public name, and the generator has nothing to complain of.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

test('every public name has a page, and the guides are there', async () => {
  execFileSync(process.execPath, ['tools/docs.js'], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const entry of ['index', 'worker', 'transformer', 'safetensors', 'onnx']) {
    assert(entry === 'index' || exports[`./${entry}`], entry);
    for (const name of Object.keys(await import(`../../dist/${entry}.js`))) {
      const pages = ['classes', 'functions', 'variables'].flatMap((kind) =>
        ['index', entry].map((module) => join(root, 'build/docs', kind, `${module}.${name}.html`)),
      );
      assert(
        pages.some((page) => existsSync(page)),
        `${entry}: ${name}`,
      );
    }
  }
  for (const guide of ['coming-from', 'memory-and-threads', 'loading']) {
    const index = readFileSync(join(root, 'build/docs/index.html'), 'utf8');
    assert(index.includes(guide) || existsSync(join(root, `build/docs/documents/${guide}.html`)), guide);
  }
});
