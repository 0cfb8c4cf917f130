// What the page shows is what the formulas say.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { multiHeadAttention } from '../support/oracle-layers.js';
import { shipped } from '../support/shipped-model.js';
import { assertClose } from '../support/tensors.js';
import { shippedOracle, softmax } from './shipped-oracle.js';
import { stateOf, useBrowser, weightAt } from './support.js';

const visit = useBrowser();
function assertMatchesModel({ ids, weights: got, candidates, state }) {
  const want = shippedOracle(ids, { disabledHeads: state.off });
  assertClose(got, want.attention.flat(9), { absolute: 1e-4, what: 'weights' });
  const whole = state.off.length ? shippedOracle(ids) : want;
  const after = softmax(want.logits[state.focus.row]);
  const before = softmax(whole.logits[state.focus.row]);
  for (const { id, ...got } of candidates) {
    assertClose([got.before, got.after], [before[id], after[id]], { absolute: 1e-4, what: `probability of ${id}` });
  }
  const most = after.map((value, id) => Math.max(value, before[id])).sort((a, b) => b - a);
  assertClose(
    candidates.map((each) => Math.max(each.before, each.after)),
    most.slice(0, 10),
    { absolute: 1e-4, what: 'the ten likeliest' },
  );
}

test('the page is cross-origin isolated and says what runs', async () => {
  await visit('', {}, async (page) => {
    assert.equal(await page.evaluate(() => self.crossOriginIsolated), true);
    const { info, milliseconds } = await stateOf(page);
    assert.equal(info.backend, 'wasm');
    assert.equal(info.simd, 'relaxed');
    assert.equal(info.threads, await page.evaluate(() => Math.min(16, navigator.hardwareConcurrency)));
    assert.match(await page.locator('#run').textContent(), /^(< )?\d+(\.\d+)? ms · relaxed SIMD · \d+ threads?$/);
    assert.ok(milliseconds > 0 && milliseconds < 5000);
    await page.locator('details.run summary').click();
    assert.match(await page.locator('#reasons').textContent(), /1\.24 M parameters, 5 layers of 4 query heads on 2/);
  });
});

for (const { name, text, ids, last_logits: last } of shipped.golden.prompts) {
  test(`trained: weights and next tokens equal the float64 forward and the golden ones: ${name}`, async () => {
    await visit(`#text=${encodeURIComponent(text)}`, {}, async (page) => {
      const state = await stateOf(page);
      assert.deepEqual(state.ids, ids);
      assert.deepEqual([state.layers, state.heads, state.causal], [5, 4, true]);
      assert.equal(state.state.focus.row, ids.length - 1);
      assertMatchesModel(state);
      assert.deepEqual(
        state.candidates.map(({ id }) => id),
        last.top10.map(([id]) => id),
      );
    });
  });
}

test('trained, with heads off: weights, and next tokens before and after', async () => {
  await visit('#off=2.2,2.3,3.3', {}, async (page) => {
    const state = await stateOf(page);
    assert.deepEqual(state.state.off, [
      [2, 2],
      [2, 3],
      [3, 3],
    ]);
    assertMatchesModel(state);
    assert.ok(state.candidates.some(({ before, after }) => Math.abs(before - after) > 0.1));
  });
});

function assertMatchesLayer({ layer, weights: got }) {
  const want = multiHeadAttention(layer.config, layer.stateDict, layer.x, { needWeights: true });
  assertClose(got, want.weights.data, { absolute: 1e-5, what: 'weights' });
  assertClose(layer.output, want.output, { absolute: 2e-5, what: 'output' });
}

for (const [heads, switches] of [
  [1, ''],
  [2, '&causal=1'],
  [4, '&rope=1'],
  [8, '&causal=1&rope=1'],
]) {
  test(`untrained layer: weights and output equal the float64 oracle: heads=${heads}${switches}`, async () => {
    await visit(`#model=untrained&heads=${heads}${switches}&seed=${heads}`, {}, async (page) => {
      const state = await stateOf(page);
      assert.deepEqual([state.layers, state.heads, state.tokens.length], [1, heads, 12]);
      assert.equal(state.layer.config.isCausal, switches.includes('causal'));
      assert.equal(Boolean(state.layer.config.rope), switches.includes('rope'));
      assertMatchesLayer(state);
    });
  });
}

test('untrained layer: the causal switch runs the kernels again', async () => {
  await visit('#model=untrained', {}, async (page) => {
    const before = await stateOf(page);
    assert.ok(weightAt(before, [0, 0], 0, 11) > 0);
    await page.getByLabel('Causal mask').click();
    const state = await stateOf(page);
    assert.equal(state.state.causal, true);
    assertMatchesLayer(state);
    for (let row = 0; row < 12; row++) {
      for (let column = row + 1; column < 12; column++) assert.equal(weightAt(state, [0, 3], row, column), 0);
    }
    await page.getByLabel('Causal mask').click();
    assert.deepEqual((await stateOf(page)).weights, before.weights);
  });
});

test('untrained layer: equal tokens have equal rows until RoPE tells their positions apart', async () => {
  await visit('#model=untrained', {}, async (page) => {
    const note = page.locator('#repeat-note');
    const rowsOf = (state, row) =>
      [0, 1, 2, 3].flatMap((head) => state.tokens.map((_, column) => weightAt(state, [0, head], row, column)));
    const before = await stateOf(page);
    assert.equal(before.tokens[0], before.tokens[7]);
    assertClose(rowsOf(before, 0), rowsOf(before, 7), { absolute: 1e-6 });
    assert.match(await note.textContent(), /the two rows are the same/);
    await page.getByLabel('Rotary positions (RoPE)').click();
    const after = await stateOf(page);
    assertMatchesLayer(after);
    const largest = Math.max(...rowsOf(after, 0).map((weight, i) => Math.abs(weight - rowsOf(after, 7)[i])));
    assert.ok(largest > 0.05, `rows differ by ${largest}`);
    assert.match(await note.textContent(), new RegExp(`up to ${largest.toFixed(3).replace('.', '\\.')}`));
  });
});

test('untrained layer: another seed draws other weights, and its number is shown and kept in the address', async () => {
  await visit('#model=untrained', {}, async (page) => {
    const before = await stateOf(page);
    await page.getByRole('button', { name: 'draw others' }).click();
    const after = await stateOf(page);
    assert.notDeepEqual(after.weights, before.weights);
    assertMatchesLayer(after);
    assert.equal(await page.locator('#seed').textContent(), '2');
    await page.waitForURL(/seed=2$/);
  });
});
