// The tokens and the arcs over them: previews, locks, keys.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cellCenter, stateOf, useBrowser, weightAt } from './support.js';

const visit = useBrowser();
const token = (page, i) => page.locator('#tokens .token').nth(i);
const arcs = (page) =>
  page.locator('.arcs path').evaluateAll((paths) =>
    paths.map((path) => ({
      width: Number(path.getAttribute('stroke-width')),
      opacity: Number(path.getAttribute('stroke-opacity')),
      title: path.textContent,
      extent: path.getBBox().width + path.getBBox().height,
    })),
  );
const focusOf = (page) =>
  page.evaluate(() => [window.attentionPage.state.focus.row, window.attentionPage.state.locked]);

test('as many arcs as chosen, the heaviest weights of the row, wide and dark by weight', async () => {
  await visit('#head=4.1&arcs=3&cell=30.0', {}, async (page) => {
    const state = await stateOf(page);
    const weights = state.tokens
      .map((_, c) => [weightAt(state, [4, 1], 30, c), c])
      .sort((a, b) => b[0] - a[0])
      .slice(0, 3);
    const drawn = await arcs(page);
    assert.equal(drawn.length, 3);
    drawn.forEach(({ width, opacity, title, extent }, i) => {
      const [weight, column] = weights[i];
      assert.ok(Math.abs(width - (1 + 5 * weight)) < 1e-3);
      assert.ok(Math.abs(opacity - (0.25 + 0.75 * weight)) < 1e-3);
      assert.equal(title, `${weight.toFixed(3)}: 30 “${state.tokens[30]}” asks ${column} “${state.tokens[column]}”`);
      assert.ok(extent > 10, `${extent} pixels`);
    });
    await page.getByLabel('Arcs').press('Home');
    assert.equal((await arcs(page)).length, 0);
  });
});

test('arcs begin at the token that asks and end at the one that is asked', async () => {
  await visit('#arcs=1', {}, async (page) => {
    const { from, to, path } = await page.evaluate(async () => {
      await document.fonts.ready;
      const middle = (i) => {
        const { left, width } = document.querySelectorAll('#tokens .token')[i].getBoundingClientRect();
        return left + width / 2;
      };
      const path = document.querySelector('.arcs path');
      const { left } = path.ownerSVGElement.getBoundingClientRect();
      const ends = [path.getPointAtLength(0), path.getPointAtLength(path.getTotalLength())];
      return { from: middle(33), to: middle(16), path: ends.map(({ x }) => x + left) };
    });
    assert.ok(Math.abs(path[0] - from) < 2 && Math.abs(path[1] - to) < 2, JSON.stringify({ from, to, path }));
  });
});

test('the pointer previews a token’s row, a click locks it, again and Escape free it', async () => {
  await visit('', {}, async (page) => {
    await token(page, 20).hover();
    assert.deepEqual(await focusOf(page), [20, false]);
    assert.match(await page.locator('#readout').textContent(), /· 20 “l” asks/);
    assert.match(await page.locator('#row-panel caption').textContent(), /row 20 “l”$/);
    await token(page, 20).click();
    assert.deepEqual(await focusOf(page), [20, true]);
    await token(page, 10).hover();
    assert.deepEqual(await focusOf(page), [20, true]);
    const { x, y } = await cellCenter(page, 30, 3);
    await page.mouse.move(x, y);
    assert.deepEqual(await focusOf(page), [20, true], 'the lock holds in every view');
    await page.keyboard.press('Escape');
    await page.mouse.move(x + 1, y);
    assert.deepEqual(await focusOf(page), [30, false]);
    assert.match(await token(page, 30).getAttribute('class'), /asks/);
    await page.getByRole('button', { name: 'Lock the cell' }).click();
    assert.deepEqual(await focusOf(page), [30, true]);
    await page.getByRole('button', { name: 'Lock the cell', pressed: true }).click();
    assert.deepEqual(await focusOf(page), [30, false]);
    await token(page, 5).click();
    await token(page, 5).click();
    assert.deepEqual(await focusOf(page), [5, false]);
  });
});

test('the keys: one stop, arrows along the text, Enter locks, space adds a row', async () => {
  await visit('', {}, async (page) => {
    const row = token(page, 33);
    assert.equal(await page.locator('#tokens .token[tabindex="0"]').count(), 1);
    await row.focus();
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowLeft');
    assert.deepEqual(await focusOf(page), [31, false]);
    await page.waitForFunction(() => document.activeElement?.matches('#tokens .asks'));
    await page.keyboard.press('Enter');
    assert.deepEqual(await focusOf(page), [31, true]);
    await page.keyboard.press(' ');
    assert.deepEqual((await stateOf(page)).state.rows, [31]);
    await page.keyboard.press('Home');
    assert.deepEqual((await focusOf(page))[0], 0);
    const selected = page.locator('#tokens [aria-selected=true]');
    assert.deepEqual(await selected.allInnerTexts(), ['bos\n0', 'le\n31']);
  });
});

test('zoom: nearer and farther, by keys, buttons and the wheel; the labels are those of the part', async () => {
  await visit('', {}, async (page) => {
    const partOf = () => page.evaluate(() => JSON.parse(document.querySelector('#map canvas:last-child').dataset.part));
    const whole = await partOf();
    await page.getByRole('button', { name: 'Zoom in' }).click();
    const near = await partOf();
    assert.ok(near.rows < whole.rows && near.row + near.rows > 33, 'the cell in focus stays in sight');
    await page.getByRole('application').focus();
    await page.keyboard.press('Home');
    assert.equal((await partOf()).column, 0, 'the part follows the keys');
    await page.keyboard.press('+');
    assert.ok((await partOf()).rows < near.rows);
    const { x, y } = await cellCenter(page, 33, 2);
    await page.mouse.move(x, y);
    assert.equal(
      await page
        .locator('#readout')
        .textContent()
        .then((text) => /· 33 “ver” asks 2 “l”/.test(text)),
      true,
    );
    const still = await partOf();
    await page.mouse.down();
    await page.mouse.move(x + 60, y + 120, { steps: 4 });
    await page.mouse.up();
    const dragged = await partOf();
    assert.ok(dragged.row < still.row && dragged.rows === still.rows, 'dragged');
    await page.mouse.move(x, y - 60);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, 100);
    await page.keyboard.up('Control');
    assert.ok((await partOf()).rows > dragged.rows, 'farther by the wheel');
    await page.getByRole('button', { name: 'Whole' }).click();
    assert.deepEqual(await partOf(), whole);
    assert.equal((await stateOf(page)).state.zoom, null);
  });
});

test('an arc and a line of the row’s list: the pointer previews their key, a click locks it, another frees it', async () => {
  await visit('#head=4.1', {}, async (page) => {
    const cell = () =>
      page.evaluate(() => [window.attentionPage.state.focus.column, window.attentionPage.state.locked]);
    const line = page.locator('#row-panel tbody tr').nth(30);
    await line.hover();
    assert.deepEqual(await cell(), [30, false]);
    await line.click();
    assert.deepEqual(await cell(), [30, true]);
    await page.locator('#row-panel tbody tr').nth(28).hover();
    assert.deepEqual(await cell(), [30, true], 'the lock holds');
    await line.click();
    assert.deepEqual(await cell(), [30, false]);
    const state = await stateOf(page);
    const weights = state.tokens.map((_, c) => weightAt(state, [4, 1], 33, c));
    const heaviest = weights.indexOf(Math.max(...weights));
    await page.locator('.arcs path').first().dispatchEvent('pointerenter');
    assert.deepEqual(await cell(), [heaviest, false]);
    await page.locator('.arcs path').first().dispatchEvent('click');
    assert.deepEqual(await cell(), [heaviest, true]);
  });
});

test('a list line says which rule hides its key', async () => {
  await visit('#window=3&cell=20.18', {}, async (page) => {
    const lines = page.locator('#row-panel tbody tr');
    assert.equal(await lines.nth(4).getAttribute('title'), 'hidden by the window');
    assert.equal(await lines.nth(25).getAttribute('title'), 'hidden by the causal mask');
    assert.equal(await lines.nth(4).locator('td').last().textContent(), 'hidden');
  });
});
