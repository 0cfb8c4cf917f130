// Before the model is there: the stored example at once, progress, and what is said when something fails.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { stateOf, useBrowser } from './support.js';

const visit = useBrowser();
const stored = JSON.parse(readFileSync(new URL('../../web/model/example.json', import.meta.url), 'utf8'));

for (const width of [1440, 1100, 390]) {
  test(`the stored example is complete while the model is on its way, and the live run takes over without a jump: ${width} px wide`, async () => {
    let release;
    const held = new Promise((resolve) => {
      release = resolve;
    });
    const arrange = (page) =>
      page.route('**/*.safetensors', async (route) => {
        await held;
        await route.continue();
      });
    await visit('', { arrange, wait: false, viewport: { width, height: 900 } }, async (page) => {
      await page.locator('#next tbody tr').nth(9).waitFor({ state: 'attached' }); // folded on a phone
      assert.equal(await page.evaluate(() => 'attentionPage' in window), false);
      const readout = await page.locator('#readout').textContent();
      assert.equal(readout, 'L4·H2 · 33 “ver” asks 16 “·st”: 0.804');
      assert.equal(await page.locator('.thumbnail').count(), 20);
      assert.equal(await page.locator('#run').textContent(), 'A stored example, model to come');
      const { painted, firstPaint } = await page.evaluate(() => ({
        painted: performance.getEntriesByName('painted')[0].startTime,
        firstPaint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
      }));
      assert.ok(painted < 2000 && firstPaint < 2000, `drawn after ${painted} ms, painted after ${firstPaint} ms`);
      const place = () =>
        page
          .locator('#map canvas')
          .first()
          .evaluate((node) => JSON.stringify(node.getBoundingClientRect()));
      const before = await place();
      release();
      await page.waitForFunction(() => 'attentionPage' in window);
      const { tokens, weights } = await stateOf(page);
      assert.deepEqual(tokens, stored.tokens);
      assert.ok(weights.length > 0);
      assert.equal(await page.locator('#readout').textContent(), readout);
      assert.equal(await place(), before);
      assert.equal(await page.locator('#progress').isHidden(), true);
    });
  });
}

test('progress in bytes while the model comes', async () => {
  const arrange = (page) =>
    page.addInitScript(() => {
      window.seen = [];
      document.addEventListener('DOMContentLoaded', () => {
        const text = document.getElementById('progress-text');
        new MutationObserver(() => window.seen.push(text.textContent)).observe(text, { childList: true });
      });
    });
  await visit('', { arrange }, async (page) => {
    const seen = await page.evaluate(() => window.seen);
    assert.ok(
      seen.some((text) => /^Loading the model: [\d.]+ MB of 2\.5 MB$/.test(text)),
      seen.join('; '),
    );
    assert.ok(
      seen.some((text) => /^Packing the weights: [\d.]+ MB of [\d.]+ MB$/.test(text)),
      seen.join('; '),
    );
  });
});

test('a model that can’t be fetched: the reason is said, and the example stays', async () => {
  const arrange = (page) => page.route('**/*.safetensors', (route) => route.fulfill({ status: 503 }));
  await visit('', { arrange, wait: false, tolerated: /503/ }, async (page) => {
    await page.getByText(/did not start: HTTP status 503/).waitFor();
    assert.equal(await page.locator('.thumbnail').count(), 20);
  });
});

test('the whole download is under 3.5 MB, the model included', async () => {
  const sizes = new Map();
  const arrange = (page) =>
    page.on('response', (response) => sizes.set(response.url(), Number(response.headers()['content-length'] ?? 0)));
  await visit('', { arrange }, async () => {
    const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    assert.ok(total > 2.4e6 && total < 3.5e6, `${total} bytes in ${sizes.size} files`);
  });
});

test('typing a long text never holds the page up: the kernels run elsewhere', async () => {
  await visit(`#text=${'and+so+on+'.repeat(90)}`, {}, async (page) => {
    await page.evaluate(() => window.attentionPage.measured());
    // The run is asked for, and the page goes on: it answers before the run does.
    const order = await page.evaluate(async () => {
      const order = [];
      const text = document.getElementById('text');
      text.value += ' more';
      text.dispatchEvent(new Event('input'));
      const settled = window.attentionPage.settled().then(() => order.push('run'));
      await new Promise((resolve) => setTimeout(resolve)).then(() => order.push('page'));
      await settled;
      return order;
    });
    assert.deepEqual(order, ['page', 'run']);
  });
});
