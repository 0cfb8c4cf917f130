// The logit lens against the float64 forward of a shorter model.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClose } from '../support/tensors.js';
import { shippedOracle, softmax } from './shipped-oracle.js';
import { stateOf, useBrowser } from './support.js';

const visit = useBrowser();

test('behind each layer the five likeliest tokens, of the row in focus', async () => {
  await visit('#cell=20.1', {}, async (page) => {
    await page.locator('#lens summary').click();
    const { ids } = await stateOf(page);
    const lens = await page.evaluate(() => window.attentionPage.lens);
    assert.deepEqual(
      lens.map(({ layer }) => layer),
      [0, 1, 2, 3, 4, 5],
    );
    for (const { layer, tokens } of lens) {
      const want = softmax(shippedOracle(ids.slice(0, 21), { layers: layer }).logits[20]);
      const best = [...want.keys()].sort((a, b) => want[b] - want[a]).slice(0, 5);
      assert.deepEqual(
        tokens.map(({ id }) => id),
        best,
      );
      assertClose(
        tokens.map(({ probability }) => probability),
        best.map((id) => want[id]),
        { absolute: 1e-4, what: `layer ${layer}` },
      );
    }
    const table = page.locator('.lens-table');
    assert.equal(await table.locator('caption').textContent(), 'After 20 “l”');
    const shown = await table.locator('tbody tr').last().locator('.token-name').allTextContents();
    assert.deepEqual(
      shown,
      lens[5].tokens.map(({ token }) => token),
    );
    assert.ok((await table.locator('tbody tr').last().locator('.final').count()) === 1);
    await page.waitForURL(/lens=1/);
    await page.getByRole('application').focus();
    await page.keyboard.press('ArrowUp');
    await page.evaluate(() => window.attentionPage.settled());
    assert.equal(await table.locator('caption').textContent(), 'After 19 “·b”');
  });
});
