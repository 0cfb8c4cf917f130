// Text, pointer, keys and address.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cellCenter, stateOf, useBrowser, weightAt } from './support.js';

const visit = useBrowser();

const focusOf = (page) => page.evaluate(() => window.attentionPage.state.focus);
const isLocked = (page) => page.evaluate(() => window.attentionPage.state.locked);

test('typing splits the text into words and signs, and computes them at once', async () => {
  await visit('', {}, async (page) => {
    await page.getByLabel('Your text').fill('Don’t panic: 42 naïve (日本) 🙂!');
    const { tokens, weights } = await stateOf(page);
    assert.deepEqual(tokens, ['Don’t', 'panic', ':', '42', 'naïve', '(', '日本', ')', '🙂', '!']);
    assert.deepEqual(weights.shape, [1, 4, 10, 10]);
    assert.deepEqual(await page.locator('#tokens li > span:first-child').allInnerTexts(), tokens);
    await page.getByLabel('Your text').press('End');
    await page.keyboard.type(' more');
    assert.equal((await stateOf(page)).tokens.at(-1), 'more');
  });
});

test('a text without tokens, and one with a single token', async () => {
  await visit('', {}, async (page) => {
    await page.getByLabel('Your text').fill('  ');
    assert.deepEqual((await stateOf(page)).weights.shape, [1, 4, 0, 0]);
    assert.match(await page.locator('#readout').textContent(), /no tokens/);
    await page.getByLabel('Your text').fill('alone');
    const state = await stateOf(page);
    assert.deepEqual(state.weights.data, [1, 1, 1, 1]);
    assert.match(await page.locator('#readout').textContent(), /“alone” asks 0 “alone”: 1\.000/);
  });
});

test('the pointer previews a cell, a click locks it, Escape and a second click free it', async () => {
  await visit('', {}, async (page) => {
    const state = await stateOf(page);
    const first = await cellCenter(page, 2, 3, 5);
    await page.mouse.move(first.x, first.y);
    assert.deepEqual(await focusOf(page), { head: 2, row: 3, column: 5 });
    const value = weightAt(state, 2, 3, 5).toFixed(3);
    assert.equal(await page.locator('.map').nth(2).locator('.value').textContent(), value);
    assert.equal(
      await page.locator('.map').nth(1).locator('.value').textContent(),
      weightAt(state, 1, 3, 5).toFixed(3),
    );
    assert.equal(await page.locator('#readout').textContent(), `H2 · 3 “the” asks 5 “,”: ${value}`);
    await page.mouse.click(first.x, first.y);
    assert.equal(await isLocked(page), true);
    const second = await cellCenter(page, 2, 7, 1);
    await page.mouse.move(second.x, second.y);
    assert.deepEqual(await focusOf(page), { head: 2, row: 3, column: 5 });
    await page.keyboard.press('Escape');
    await page.mouse.move(second.x + 1, second.y);
    assert.deepEqual(await focusOf(page), { head: 2, row: 7, column: 1 });
    await page.mouse.click(second.x, second.y);
    assert.equal(await isLocked(page), true);
    await page.mouse.click(second.x, second.y);
    assert.equal(await isLocked(page), false);
  });
});

test('the keys move the cell in every direction, stop at the edges, and lock', async () => {
  await visit('#causal=1', {}, async (page) => {
    const map = page.getByRole('application', { name: /head H1/ });
    await page.getByRole('application', { name: /head H0/ }).focus();
    await page.keyboard.press('Tab');
    assert.ok(await map.evaluate((node) => node === document.activeElement));
    assert.equal((await focusOf(page)).head, 1);
    for (const key of ['ArrowDown', 'ArrowRight', 'Home', 'ArrowLeft', 'ArrowRight', 'ArrowUp']) {
      await page.keyboard.press(key);
    }
    assert.deepEqual(await focusOf(page), { head: 1, row: 4, column: 1 });
    await page.keyboard.press('End');
    assert.deepEqual(await focusOf(page), { head: 1, row: 4, column: 12 });
    assert.match(await page.locator('#readout').textContent(), /^H1 · 4 “dog” asks 12 “\.”: hidden$/);
    await page.keyboard.press('Enter');
    assert.equal(await isLocked(page), true);
    await page.keyboard.press('Escape');
    assert.equal(await isLocked(page), false);
    const outline = await map.evaluate((node) => getComputedStyle(node).outlineStyle);
    assert.equal(outline, 'solid', 'the map that has the keys shows it');
  });
});

test('every control is reached by Tab, in the order of reading', async () => {
  await visit('', {}, async (page) => {
    const stops = [];
    for (let i = 0; i < 12; i++) {
      await page.keyboard.press('Tab');
      stops.push(
        await page.evaluate(
          () =>
            document.activeElement?.id ||
            document.activeElement?.getAttribute('aria-label') ||
            document.activeElement?.localName,
        ),
      );
    }
    assert.deepEqual(stops.slice(0, 2), ['theme', 'text']);
    for (const id of ['causal', 'rope', 'run', 'row-panel', 'reseed'])
      assert.ok(stops.includes(id), `${id} in ${stops}`);
    assert.equal(stops.filter((stop) => stop.startsWith('Weights of head')).length, 4);
  });
});

test('the table holds the row in focus, weight by weight', async () => {
  await visit('#causal=1', {}, async (page) => {
    const state = await stateOf(page);
    const { head, row } = state.state.focus;
    const cells = await page
      .locator('.row-table tbody tr')
      .evaluateAll((rows) =>
        rows.map((line) => [line.querySelector('th').textContent, line.querySelector('td:last-child').textContent]),
      );
    const want = state.tokens.map((token, column) => [
      token,
      column > row ? 'hidden' : weightAt(state, head, row, column).toFixed(3),
    ]);
    assert.deepEqual(cells, want);
    assert.match(await page.locator('.row-table caption').textContent(), new RegExp(`^H${head} · row ${row} “dog”$`));
  });
});

test('the address holds what was chosen, and a reload or another address brings it up', async () => {
  await visit('', {}, async (page) => {
    await page.getByLabel('Your text').fill('to be, or not to be');
    await page.getByRole('radio', { name: '8' }).check();
    await page.getByLabel('Rotary positions (RoPE)').click();
    const { state, weights } = await stateOf(page);
    await page.waitForURL(/rope=1/);
    await page.reload();
    await page.waitForFunction(() => 'attentionPage' in window);
    const again = await stateOf(page);
    assert.deepEqual(again.state, state);
    assert.deepEqual(again.weights, weights);
    await page.evaluate(() => {
      location.hash = '#heads=2&text=a+b';
    });
    await page.waitForFunction(() => window.attentionPage.state.heads === 2);
    assert.deepEqual((await stateOf(page)).tokens, ['a', 'b']);
  });
});

test('nonsense in the address gives the defaults', async () => {
  await visit('#heads=3&seed=-1&causal=yes&%E0%A4%A', {}, async (page) => {
    const { state } = await stateOf(page);
    assert.deepEqual([state.heads, state.seed, state.causal, state.rope], [4, 1, false, false]);
  });
});
