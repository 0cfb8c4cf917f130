// The download of a page that imports load() and uses one thread: one wasm, and the JavaScript, as gzip -9.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { download, table } from '../../tools/size.js';

/** To be lowered with every saving. */
const kLimit = 58_500;

test('the download of load() stays within its limit', async (t) => {
  const sizes = await download();
  for (const line of table(sizes)) t.diagnostic(line);
  const most = Math.max(...Object.values(sizes.totals));
  assert(most <= kLimit, `${most} bytes`);
});

test('what load() does not need is not in it', async () => {
  const { modules, script } = await download();
  assert.deepEqual(modules, ['dist/check.js', 'dist/core.js']);
  // What each other part would bring, by a word that it can't do without.
  for (const word of ['cos_cache', 'readSafetensors', 'createWorker', 'hidden_size', 'requestAdapter']) {
    assert(!script.includes(word), word);
  }
});

test('parts can be had alone: reading safetensors brings no kernel', async () => {
  const { script } = await download(
    "import 'attention-wasm'; export { readSafetensors } from 'attention-wasm/safetensors';",
  );
  assert.match(script, /readSafetensors/);
  assert.doesNotMatch(script, /WebAssembly/);
  assert(script.length < 10_000, `${script.length} characters`);
});
