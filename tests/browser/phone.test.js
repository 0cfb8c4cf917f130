// With fingers on a narrow screen: what is touched is large enough, and works.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cellCenter, stateOf, useBrowser } from './support.js';

const visit = useBrowser();
const kPhone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const kTouched = 'button, summary, select, input, textarea, [role=option], a[href]';

test('every control of the instrument is at least 44 pixels high, or a line of text', async () => {
  await visit('', kPhone, async (page) => {
    assert.equal(await page.evaluate(() => matchMedia('(pointer: coarse)').matches), true);
    await page.getByRole('button', { name: 'All', exact: true }).click();
    for (const fold of await page.locator('#instrument .fold').all()) await fold.locator('> summary').click();
    await page.evaluate(() => window.attentionPage.settled());
    const small = await page.evaluate((selector) => {
      // What is touched of a hidden box is the label around it.
      const touched = (node) => (node.matches('label input') ? node.closest('label') : node);
      return [...document.querySelectorAll(`#instrument :is(${selector}), #what-if :is(${selector})`)]
        .filter((node) => node.checkVisibility() && !node.matches('.link, p a'))
        .map((node) => ({ node, height: touched(node).getBoundingClientRect().height }))
        .filter(({ height }) => height < 43.5)
        .map(({ node, height }) => `${node.outerHTML.slice(0, 80)}: ${height}`);
    }, kTouched);
    assert.deepEqual(small, []);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${width} pixels wide`);
  });
});

test('a tap on a token and on a cell moves and locks the focus; the heads open on a tap', async () => {
  await visit('', kPhone, async (page) => {
    await page.locator('#tokens .token').nth(3).tap();
    const { state } = await stateOf(page);
    assert.deepEqual([state.focus.row, state.locked], [3, true]);
    const { x, y } = await cellCenter(page, 30, 12);
    await page.touchscreen.tap(x, y);
    assert.deepEqual((await stateOf(page)).state.focus, { row: 30, column: 12 });
    await page.getByRole('button', { name: 'Heads', exact: true }).click();
    await page.getByRole('radio', { name: /^L2·H3/ }).tap();
    assert.deepEqual((await stateOf(page)).state.at, [2, 3]);
  });
});
