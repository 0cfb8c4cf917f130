// What the tests of load() share.
import assert from 'node:assert/strict';
import { AttentionError, load } from './package.js';

const row = { data: Float32Array.of(1, 2), shape: [1, 2] };

export function assertWorks(attention) {
  assert.deepEqual([...attention.scaledDotProductAttention(row, row, row).output.data], [1, 2]);
}

/** The error of load(). */
export async function refused(options, code, message) {
  const error = await load(options).then(assert.fail, (reason) => reason);
  assert(error instanceof AttentionError, error.stack);
  assert.equal(error.code, code, error.message);
  assert.match(error.message, message);
  return error;
}
