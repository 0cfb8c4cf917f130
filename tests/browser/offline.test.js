// After the first visit the page opens without a network, wherever it is hosted.
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { serve } from '../../tools/serve.js';
import { launch, stateOf } from './support.js';

const kPageFolder = resolve(import.meta.dirname, '../../build/page');

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

for (const [name, options] of Object.entries({
  'an isolated host': {},
  'a plain host, below a path': { base: '/some/deep/path/', isolated: false },
})) {
  test(`${name}: the second visit needs no server`, async () => {
    const server = await serve(kPageFolder, options);
    const context = await browser.newContext();
    try {
      const page = await context.newPage();
      await page.goto(server.url);
      await page.waitForFunction(() => 'attentionPage' in window);
      const before = await stateOf(page);
      await page.evaluate(async () => {
        await navigator.serviceWorker.ready;
        if (!navigator.serviceWorker.controller) {
          await new Promise((resolve) => {
            navigator.serviceWorker.addEventListener('controllerchange', resolve);
          });
        }
      });
      await server.close();
      await page.reload();
      await page.waitForFunction(() => 'attentionPage' in window);
      const { weights, tokens, candidates, info } = await stateOf(page);
      assert.deepEqual([tokens, weights, candidates], [before.tokens, before.weights, before.candidates]);
      assert.deepEqual([info.simd, info.threads], [before.info.simd, before.info.threads]);
      await page.getByLabel('Your text').fill('no network here');
      assert.match((await stateOf(page)).tokens.join(''), /·here$/);
      assert.equal(
        await page.evaluate(() =>
          fetch('./not-there').then(
            () => 'answered',
            () => 'no network',
          ),
        ),
        'no network',
      );
    } finally {
      await context.close();
      await server.close().catch(() => {}); // it may be closed already
    }
  });
}
