// The first example of the README runs as it stands there and prints what the README says.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const root = resolve(import.meta.dirname, '..');

test('the ten lines of the README print the output beside them', async () => {
  const [, code, output] = readFileSync(join(root, 'README.md'), 'utf8').match(/```js\n(.*?)```\s*```text\n(.*?)```/s);
  const folder = join(root, 'build/readme'); // inside the package, so that its own name leads to it
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `example-${process.pid}.mjs`);
  writeFileSync(file, code);
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [file]);
  assert.equal(stdout, output);
  assert.equal(stderr, '');
});
