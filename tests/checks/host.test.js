import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testHost } from '../../tools/host.js';

test('the kernels compiled for this machine are right, also under sanitizers and a minute of fuzzing', (t) => {
  const output = testHost();
  for (const [line] of output.matchAll(/^.*Test +#.*(Passed|Failed).*$/gm)) t.diagnostic(line.trim());
  assert.match(output, /100% tests passed, 0 tests failed out of [1-9]/);
});
