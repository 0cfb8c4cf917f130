// Anywhere a folder of files can be put: below a path, and without the headers that allow shared memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shipped } from '../support/shipped-model.js';
import { assertClose } from '../support/tensors.js';
import { stateOf, useBrowser } from './support.js';

const visitPlainHost = useBrowser({ base: '/some/deep/path/', isolated: false });

test('without isolation headers, below a path: one thread, the reason for it, the same answers', async () => {
  const { text, last_logits: last } = shipped.golden.prompts[1];
  await visitPlainHost(`#text=${encodeURIComponent(text)}`, {}, async (page) => {
    assert.equal(await page.evaluate(() => self.crossOriginIsolated), false);
    const { info, candidates } = await stateOf(page);
    assert.equal(info.threads, 1);
    assert.ok(
      info.reasons.some((reason) => /isolat|shared memory/i.test(reason)),
      `reasons: ${info.reasons}`,
    );
    assert.match(await page.locator('#run').textContent(), /· 1 thread$/);
    assertClose(
      candidates.map(({ after }) => after),
      last.top10.map(([, logit]) => Math.exp(logit - last.logsumexp)),
      { absolute: 1e-3 },
    );
  });
});
