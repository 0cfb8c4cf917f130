// Every example of web/examples runs as it stands there, and prints what it is to print; so does every snippet of the
// guides and of the documentation of types.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { random } from './support/random.js';
import { safetensorsOf } from './support/safetensors.js';

const root = resolve(import.meta.dirname, '..');
const examples = join(root, 'web/examples');
const folder = join(root, 'build', `examples-${process.pid}`); // inside the package, so that its own name leads to it
mkdirSync(folder, { recursive: true });
after(() => rmSync(folder, { recursive: true }));

/** @param {string} file in `folder` */
async function run(file) {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], { cwd: folder, timeout: 60_000 });
  assert.equal(stderr, '');
  return stdout;
}

const kPrints = {
  'attention.js': /^\[ 1, 2, 4, 8 \] Float32Array\(8\) \[\s*0, 1, 2, 3,\s*4, 5, 6, 7\s*\]\n$/,
  'decoding.js': /^0 1 0\.0000\n1 2 .*\n2 3 .*\n3 4 .*\n4 5 -?\d\.\d{4}\n$/,
  'weights.js': /^\[ 1, 1, 2, 1024 \] \[ '1\.000', '1\.000' \]\n$/,
  'safetensors.js':
    /^\[\s*'q_proj\.weight',\s*'k_proj\.weight',\s*'v_proj\.weight',\s*'out_proj\.weight'\s*\] \[ 1, 3, 16 \]\n$/,
  'worker.js': /^0 of \d+ slices\n(\d+ of \d+ slices\n)*\[ 1, 8, 2048, 64 \]\nABORTED\n$/,
};

describe('examples', () => {
  test('each is tested', () => assert.deepEqual(readdirSync(examples).sort(), Object.keys(kPrints).sort()));

  const g = random(5);
  const shapes = { q_proj: [16, 16], k_proj: [8, 16], v_proj: [8, 16], out_proj: [16, 16] };
  const tensors = Object.entries(shapes).map(([name, shape]) => [`${name}.weight`, g.tensor(shape)]);
  writeFileSync(join(folder, 'layer.safetensors'), safetensorsOf(Object.fromEntries(tensors)));
  for (const [name, want] of Object.entries(kPrints)) {
    test(name, async () => {
      const text = readFileSync(join(examples, name), 'utf8');
      assert(text.split('\n').length < 24, 'an example is about ten lines');
      copyFileSync(join(examples, name), join(folder, name));
      assert.match(await run(name), want);
    });
  }
});

describe('snippets', () => {
  const guides = readdirSync(join(root, 'web/guides')).filter((name) => name.endsWith('.md'));
  for (const guide of guides) {
    const text = readFileSync(join(root, 'web/guides', guide), 'utf8');
    // A snippet that stands before its output is run and compared.
    const snippets = [...text.matchAll(/```js\n(.*?)```\s*```text\n(.*?)```/gs)];
    test(`${guide}: each snippet prints what stands below it`, async () => {
      assert(snippets.length > 0);
      assert.equal(text.match(/```js\n/g).length, snippets.length, 'a snippet without its output');
      for (const [n, [, code, output]] of snippets.entries()) {
        const file = `${guide}-${n}.mjs`;
        writeFileSync(join(folder, file), code);
        assert.equal(await run(file), output, code);
      }
    });
  }
});
