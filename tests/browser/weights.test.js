// What the page shows is what the formulas say.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { multiHeadAttention } from '../support/oracle-layers.js';
import { assertClose } from '../support/tensors.js';
import { stateOf, useBrowser, weightAt } from './support.js';

const visit = useBrowser();

function assertMatchesOracle(state) {
  const want = multiHeadAttention(state.config, state.stateDict, state.x, { needWeights: true });
  assertClose(state.weights, want.weights, { absolute: 1e-5, what: 'weights' });
  assertClose(state.output, want.output, { absolute: 2e-5, what: 'output' });
}

test('the page is cross-origin isolated and says what runs', async () => {
  await visit('', {}, async (page) => {
    assert.equal(await page.evaluate(() => self.crossOriginIsolated), true);
    const { info, milliseconds } = await stateOf(page);
    assert.equal(info.backend, 'wasm');
    assert.equal(info.simd, 'relaxed');
    assert.equal(info.threads, await page.evaluate(() => Math.min(16, navigator.hardwareConcurrency)));
    const line = await page.locator('#run').textContent();
    assert.match(line, /^(< )?\d+(\.\d+)? ms · relaxed SIMD · \d+ threads?$/);
    assert.ok(milliseconds >= 0 && milliseconds < 5000);
  });
});

for (const heads of [1, 2, 4, 8]) {
  for (const switches of ['', '&causal=1', '&rope=1', '&causal=1&rope=1']) {
    test(`weights and output equal the float64 oracle: heads=${heads}${switches}`, async () => {
      await visit(`#heads=${heads}${switches}&seed=${heads}`, {}, async (page) => {
        const state = await stateOf(page);
        assert.deepEqual(state.weights.shape, [1, heads, 13, 13]);
        assert.equal(state.config.isCausal, switches.includes('causal'));
        assert.equal(Boolean(state.config.rope), switches.includes('rope'));
        assertMatchesOracle(state);
      });
    });
  }
}

test('a long text: 256 tokens are computed, and the page says that it left out the rest', async () => {
  await visit(`#heads=8&causal=1&rope=1&text=${'one+two+three+'.repeat(100)}`, {}, async (page) => {
    const state = await stateOf(page);
    assert.deepEqual(state.weights.shape, [1, 8, 256, 256]);
    assertMatchesOracle(state);
    assert.match(await page.locator('#token-count').textContent(), /first 256 of 300/);
    assert.ok((await page.locator('*').count()) < 12 * 256, 'elements grow with the tokens, not with their square');
  });
});

test('the causal switch runs the kernels again: zeros above the diagonal, rows still add up to 1', async () => {
  await visit('', {}, async (page) => {
    const before = await stateOf(page);
    assert.ok(weightAt(before, 0, 0, 12) > 0);
    await page.getByLabel('Causal mask').click();
    const state = await stateOf(page);
    assert.equal(state.state.causal, true);
    assertMatchesOracle(state);
    for (let head = 0; head < 4; head++) {
      for (let row = 0; row < 13; row++) {
        let sum = 0;
        for (let column = 0; column < 13; column++) {
          const weight = weightAt(state, head, row, column);
          if (column > row) assert.equal(weight, 0, `H${head} ${row} ${column}`);
          sum += weight;
        }
        assert.ok(Math.abs(sum - 1) < 1e-5);
      }
    }
    await page.getByLabel('Causal mask').click();
    assert.deepEqual((await stateOf(page)).weights, before.weights);
  });
});

test('equal tokens have equal rows until the RoPE switch tells their positions apart', async () => {
  await visit('', {}, async (page) => {
    const note = page.locator('#repeat-note');
    const rowsOf = (state, row) =>
      [0, 1, 2, 3].flatMap((head) => Array.from({ length: 13 }, (_, column) => weightAt(state, head, row, column)));
    const before = await stateOf(page);
    assert.equal(before.tokens[1], before.tokens[11]);
    assertClose(rowsOf(before, 1), rowsOf(before, 11), { absolute: 1e-6 });
    assert.match(await note.textContent(), /the two rows are the same/);
    await page.getByLabel('Rotary positions (RoPE)').click();
    const after = await stateOf(page);
    assertMatchesOracle(after);
    const largest = Math.max(...rowsOf(after, 1).map((weight, i) => Math.abs(weight - rowsOf(after, 11)[i])));
    assert.ok(largest > 0.05, `rows differ by ${largest}`);
    assert.match(await note.textContent(), new RegExp(`up to ${largest.toFixed(3).replace('.', '\\.')}`));
  });
});

test('another seed draws other weights, and its number is shown and kept in the address', async () => {
  await visit('', {}, async (page) => {
    const before = await stateOf(page);
    await page.getByRole('button', { name: 'draw others' }).click();
    const after = await stateOf(page);
    assert.notDeepEqual(after.weights, before.weights);
    assertMatchesOracle(after);
    assert.equal(await page.locator('#seed').textContent(), '2');
    await page.waitForURL(/#seed=2$/);
  });
});
