// Text, pointer, keys and address.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cellCenter, stateOf, useBrowser, weightAt } from './support.js';

const visit = useBrowser();

const focusOf = (page) => page.evaluate(() => window.attentionPage.state.focus);
const isLocked = (page) => page.evaluate(() => window.attentionPage.state.locked);

test('typing runs the model again; signs of several bytes are shown by their bytes', async () => {
  await visit('', {}, async (page) => {
    await page.getByLabel('Your text').fill('Don’t panic, Miss');
    const { tokens, ids, candidates } = await stateOf(page);
    assert.equal(tokens[0], 'bos');
    assert.equal(tokens.join('').slice(3), 'Don⟨E2⟩⟨80⟩⟨99⟩t·panic,·Miss');
    assert.equal(ids[0], 0);
    assert.deepEqual(await page.locator('#tokens .token > span:first-child').allInnerTexts(), tokens);
    assert.equal(await page.locator('#next tbody tr').count(), 10);
    assert.equal(await page.locator('#next tbody th').first().textContent(), candidates[0].token);
    await page.getByLabel('Your text').press('End');
    await page.keyboard.type(' Bingley');
    assert.match((await stateOf(page)).tokens.join(''), /·Bingley$/);
  });
});

test('an empty text leaves the first token; the layer has none then', async () => {
  await visit('', {}, async (page) => {
    await page.getByLabel('Your text').fill('');
    const state = await stateOf(page);
    assert.deepEqual([state.tokens, state.weights], [['bos'], new Array(20).fill(1)]);
    assert.equal(await page.locator('#readout').textContent(), 'L4·H2 · 0 “bos” asks 0 “bos”: 1.000');
    await page.getByRole('radio', { name: 'Untrained layer' }).check();
    assert.deepEqual((await stateOf(page)).weights, []);
    assert.match(await page.locator('#readout').textContent(), /no tokens/);
  });
});

test('the examples put their text in', async () => {
  await visit('', {}, async (page) => {
    await page.getByRole('button', { name: 'Made-up words' }).click();
    const { state, candidates } = await stateOf(page);
    assert.equal(state.text, 'Zorblat quim vexil. Zorblat quim');
    assert.equal(candidates[0].token, '·');
    assert.ok(candidates[0].after > 0.9);
  });
});

test('the pointer previews a cell, a click locks it, Escape and a second click free it', async () => {
  await visit('', {}, async (page) => {
    const state = await stateOf(page);
    const first = await cellCenter(page, 25, 8);
    await page.mouse.move(first.x, first.y);
    assert.deepEqual(await focusOf(page), { row: 25, column: 8 });
    const value = weightAt(state, [4, 2], 25, 8).toFixed(3);
    assert.equal(await page.locator('#readout').textContent(), `L4·H2 · 25 “en” asks 8 “·w”: ${value}`);
    await page.mouse.click(first.x, first.y);
    assert.equal(await isLocked(page), true);
    assert.match(await page.locator('#readout').textContent(), /· locked$/);
    const second = await cellCenter(page, 17, 1);
    await page.mouse.move(second.x, second.y);
    assert.deepEqual(await focusOf(page), { row: 25, column: 8 });
    await page.keyboard.press('Escape');
    await page.mouse.move(second.x + 1, second.y);
    assert.deepEqual(await focusOf(page), { row: 17, column: 1 });
    await page.mouse.click(second.x, second.y);
    assert.equal(await isLocked(page), true);
    await page.mouse.click(second.x, second.y);
    assert.equal(await isLocked(page), false);
  });
});

test('next tokens are those after the row in focus', async () => {
  await visit('', {}, async (page) => {
    const { x, y } = await cellCenter(page, 20, 1);
    await page.mouse.move(x, y);
    const { candidates, tokens } = await stateOf(page);
    assert.equal(tokens[20], 'l');
    assert.match(await page.locator('#next caption').textContent(), /^Next token after 20 “l”$/);
    assert.equal(candidates[0].token, 'u', 'the phrase goes on as it did before');
  });
});

test('the keys move the cell in every direction, stop at the edges, and lock', async () => {
  await visit('', {}, async (page) => {
    const map = page.getByRole('application', { name: /head L4·H2, 34 by 34 tokens/ });
    await map.focus();
    await page.keyboard.press('Home');
    for (const key of ['ArrowUp', 'ArrowRight', 'ArrowRight', 'ArrowLeft', 'ArrowDown', 'ArrowDown']) {
      await page.keyboard.press(key);
    }
    assert.deepEqual(await focusOf(page), { row: 33, column: 1 });
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('End');
    assert.deepEqual(await focusOf(page), { row: 32, column: 33 });
    assert.match(
      await page.locator('#readout').textContent(),
      /^L4·H2 · 32 “·ri” asks 33 “ver”: hidden by the causal mask$/,
    );
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
    await page.evaluate(() => window.attentionPage.measured());
    const stops = [];
    for (let i = 0; i < 41; i++) {
      await page.keyboard.press('Tab');
      stops.push(
        await page.evaluate(
          () => document.activeElement?.id || document.activeElement?.textContent || document.activeElement?.localName,
        ),
      );
    }
    assert.deepEqual(stops.slice(0, 4), ['skip', 'theme', 'text', 'Repeated words']);
    assert.equal(stops.filter((stop) => stop.startsWith('L4·H2')).length, 1, 'the heads are one stop');
    for (const id of ['run', 'row-panel', 'head-on', 'off-induction', 'off-previous', 'own-files'])
      assert.ok(stops.includes(id), `${id} in ${stops}`);
  });
});

test('the table holds the row in focus, weight by weight', async () => {
  await visit('', {}, async (page) => {
    await page.getByRole('application').focus();
    for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowUp');
    const state = await stateOf(page);
    const cells = await page
      .locator('#row-panel tbody tr')
      .evaluateAll((rows) =>
        rows.map((line) => [line.querySelector('th').textContent, line.querySelector('td:last-child').textContent]),
      );
    const want = state.tokens.map((token, column) => [
      token,
      column > 28 ? 'hidden' : weightAt(state, [4, 2], 28, column).toFixed(3),
    ]);
    assert.deepEqual(cells, want);
    assert.equal(await page.locator('#row-panel caption').textContent(), 'L4·H2 · row 28 “ow”');
  });
});

test('the address holds what was chosen, and a reload or another address brings it up', async () => {
  await visit('', {}, async (page) => {
    await page.getByLabel('Your text').fill('to be, or not to be');
    await page.getByRole('radio', { name: /^L2·H3/ }).click();
    await page.getByLabel('L2·H3 on').click();
    const { state, weights } = await stateOf(page);
    assert.deepEqual([state.at, state.off], [[2, 3], [[2, 3]]]);
    await page.waitForURL(/head=2\.3&off=2\.3/);
    await page.reload();
    await page.waitForFunction(() => 'attentionPage' in window);
    const again = await stateOf(page);
    assert.deepEqual([again.state.at, again.state.off, again.state.text], [state.at, state.off, state.text]);
    assert.deepEqual(again.weights, weights);
    await page.evaluate(() => {
      location.hash = '#model=untrained&heads=2&text=a+b';
    });
    await page.waitForFunction(() => window.attentionPage.state.heads === 2);
    assert.deepEqual((await stateOf(page)).tokens, ['a', 'b']);
  });
});

test('nonsense in the address gives the defaults, and heads that are not there are left out', async () => {
  await visit('#model=7&heads=3&seed=-1&causal=yes&off=x,9.9&head=99.1&%E0%A4%A', {}, async (page) => {
    const { state, layers } = await stateOf(page);
    assert.deepEqual([state.heads, state.seed, state.causal, state.model], [4, 1, false, 'trained']);
    assert.deepEqual([layers, state.at, state.off], [5, [4, 1], []]);
  });
});
