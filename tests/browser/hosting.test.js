// Anywhere a folder of files can be put: below a path, and without the headers that allow shared memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { multiHeadAttention } from '../support/oracle-layers.js';
import { assertClose } from '../support/tensors.js';
import { stateOf, useBrowser } from './support.js';

const visitPlainHost = useBrowser({ base: '/some/deep/path/', isolated: false });

test('without isolation headers, below a path: one thread, the reason for it, the same weights', async () => {
  await visitPlainHost('', {}, async (page) => {
    assert.equal(await page.evaluate(() => self.crossOriginIsolated), false);
    const state = await stateOf(page);
    assert.equal(state.info.threads, 1);
    assert.ok(
      state.info.reasons.some((reason) => /isolat|shared memory/i.test(reason)),
      `reasons: ${state.info.reasons}`,
    );
    assert.match(await page.locator('#run').textContent(), /· 1 thread$/);
    const { weights } = multiHeadAttention(state.config, state.stateDict, state.x);
    assertClose(state.weights, weights, { absolute: 1e-5 });
  });
});
