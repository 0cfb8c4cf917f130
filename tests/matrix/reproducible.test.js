// Two builds from the same sources, in two folders, give the same bytes: the wasm, the glue and the single file.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const copy = mkdtempSync(join(tmpdir(), 'attention-wasm-again-'));
after(() => rmSync(copy, { recursive: true, force: true }));

test('a second build, elsewhere, gives the same files', { timeout: 1_200_000 }, () => {
  const names = ['CMakeLists.txt', 'package.json', 'package-lock.json', 'tsconfig.json', 'src', 'bindings', 'tools'];
  const skipped = /node_modules/;
  for (const name of names)
    cpSync(join(root, name), join(copy, name), { recursive: true, filter: (path) => !skipped.test(path) });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  execFileSync(process.execPath, ['tools/build.js'], { cwd: copy, stdio: ['ignore', 'ignore', 'inherit'] });
  const files = (folder) =>
    readdirSync(join(folder, 'dist'))
      .filter((name) => /\.(wasm|js)$/.test(name))
      .sort();
  assert.deepEqual(files(copy), files(root));
  assert(files(root).length >= 16);
  for (const name of files(root)) {
    const [one, two] = [root, copy].map((folder) => readFileSync(join(folder, 'dist', name)));
    assert(one.equals(two), `${name}: ${one.length} and ${two.length} bytes`);
  }
});
