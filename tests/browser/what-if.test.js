// The trained model asked to attend otherwise: every number against the float64 forward, before and after.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClose } from '../support/tensors.js';
import { matrixOf, shippedOracle, softmax } from './shipped-oracle.js';
import { stateOf, useBrowser } from './support.js';

const visit = useBrowser();
const kScale = 1 / Math.sqrt(32);

/** Addresses, the options of forward() that they stand for, and the rule that hides keys. */
const kChanges = {
  'mask=0': [{ isCausal: false }, { causal: false, left: -1, right: -1 }],
  'scale=2': [{ scale: 2 * kScale }],
  'temp=0.5': [{ temperature: 0.5 }],
  'rotary=0': [{ rope: false }],
  'cap=2&scale=4': [{ softcap: 2, scale: 4 * kScale }],
  'window=4': [{ windowSize: [4, -1] }, { causal: true, left: 4, right: -1 }],
  'window=2&mask=0': [
    { windowSize: [2, 2], isCausal: false },
    { causal: false, left: 2, right: 2 },
  ],
};

for (const [hash, [change, rule = { causal: true, left: -1, right: -1 }]] of Object.entries(kChanges)) {
  test(`${hash}: weights, next tokens and what has changed`, async () => {
    await visit(`#${hash}&show=change&head=2.3`, {}, async (page) => {
      const state = await stateOf(page);
      const before = shippedOracle(state.ids);
      const after = shippedOracle(state.ids, { attention: change });
      assert.deepEqual(state.rules[0], rule);
      assert.equal(state.changed, true);
      assertClose(state.weights, after.attention.flat(9), { absolute: 2e-4, what: 'weights' });
      const { row } = state.state.focus;
      const [was, is] = [before, after].map(({ logits }) => softmax(logits[row]));
      for (const { id, before: shownBefore, after: shownAfter } of state.candidates) {
        assertClose([shownBefore, shownAfter], [was[id], is[id]], { absolute: 2e-4, what: `probability of ${id}` });
      }
      assert.ok(state.candidates.some((each) => Math.abs(each.before - each.after) > 0.005));
      const { rows, extreme } = await matrixOf(page);
      let largest = 0;
      rows.forEach((values, r) => {
        values.forEach((value, c) => {
          const want = after.attention[2][3][r][c] - before.attention[2][3][r][c];
          if (value === null) assert.equal(want, 0);
          else assertClose([value], [want], { absolute: 2e-4 });
          largest = Math.max(largest, Math.abs(value ?? 0));
        });
      });
      assert.equal(extreme, largest);
      assert.equal(await page.locator('#highest').textContent(), `+${largest.toFixed(3)}`);
      const bars = page.locator('#next tbody tr').first().locator('.bar');
      assert.equal(await bars.count(), 2);
    });
  });
}

test('the readout says which rule hides a cell', async () => {
  await visit('#window=3&cell=20.4', {}, async (page) => {
    const readout = page.locator('#readout');
    assert.match(await readout.textContent(), /^L4·H2 · 20 “l” asks 4 “e”: hidden by the window · locked$/);
    await page.getByRole('application').focus();
    await page.keyboard.press('End');
    assert.match(await readout.textContent(), /asks 33 “ver”: hidden by the causal mask · locked$/);
    assert.ok(await page.getByText('hidden by mask or window').isVisible());
  });
});

test('by hand: switches and sliders run the kernels, and one button brings the trained model back', async () => {
  await visit('', {}, async (page) => {
    const before = await stateOf(page);
    const change = page.getByRole('radio', { name: 'Change', exact: true });
    assert.equal(await change.isDisabled(), true, 'nothing has changed yet');
    const panel = page.getByRole('region', { name: 'What if' });
    await panel.getByLabel('Causal mask').click();
    assert.deepEqual((await stateOf(page)).rules[0], { causal: false, left: -1, right: -1 });
    await page.getByRole('radio', { name: 'Change', exact: true }).check();
    await panel.getByLabel('Rotary positions (RoPE)').click();
    await panel.getByLabel('Temperature').press('ArrowLeft');
    await panel.getByLabel('Window').press('Home');
    const state = await stateOf(page);
    const { mask, rotary, temperature, window: size, show } = state.state;
    assert.deepEqual([mask, rotary, temperature, size, show], [false, false, 0.75, 0, 'change']);
    for (let i = 0; i < 34; i++) assert.equal(state.weights[i * 34 + i], 1, 'a row sees itself alone');
    await page.waitForURL(/show=change&mask=0&temp=0\.75&rotary=0&window=0/);
    await page.getByRole('button', { name: 'As it was trained' }).click();
    const after = await stateOf(page);
    assert.deepEqual(after.weights, before.weights);
    assert.deepEqual([after.state.show, after.changed], ['weights', false]);
    assert.equal(await change.isDisabled(), true);
  });
});

test('no scale: scores times √d, one switch', async () => {
  await visit('', {}, async (page) => {
    await page.getByLabel('No scale (scores times √d)').click();
    const state = await stateOf(page);
    const want = shippedOracle(state.ids, { attention: { scale: 1 } });
    assertClose(state.weights, want.attention.flat(9), { absolute: 1e-3 });
    await page.getByLabel('No scale (scores times √d)').click();
    assert.equal((await stateOf(page)).state.scale, 1);
  });
});
