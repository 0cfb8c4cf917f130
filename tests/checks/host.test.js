import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '../../tools/host.js';

test('the kernels compiled for this machine agree with the plain ones, also under sanitizers', (t) => {
  const output = testHost();
  t.diagnostic(output.trim().split('\n').slice(-3, -2).join());
  assert.match(output, /100% tests passed, 0 tests failed out of [1-9]/);
});
