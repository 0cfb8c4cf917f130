// What the tests of attention-wasm/worker share.
import assert from 'node:assert/strict';
import { AttentionError } from 'attention-wasm/worker';

/** For load(): one build, whatever the machine. */
export const options = { simd: 'baseline', threads: 1 };

/** The error of a promise. */
export async function failure(promise, code, message) {
  const error = await promise.then(
    () => assert.fail('it did not reject'),
    (reason) => reason,
  );
  assert(error instanceof AttentionError, error.stack);
  assert.equal(error.code, code, error.message);
  assert.match(error.message, message);
  return error;
}
