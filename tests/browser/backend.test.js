// The switch between wasm and WebGPU: the same numbers on both, and why it can't be had where it can't.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { assertClose } from '../support/tensors.js';
import { stateOf, unfold, useBrowser } from './support.js';

const kText = 'blue seven window. blue seven';
const kClose = { absolute: 1e-4 };
const address = (settings) => `#${new URLSearchParams({ text: kText, ...settings })}`;

// A click, not `check`, which wants the choice to last: where it is refused, it goes back.
/** @param {import('playwright-core').Page} page @param {'wasm' | 'WebGPU'} name */
const choose = (page, name) =>
  page.getByRole('group', { name: 'Computed by' }).getByRole('radio', { name, exact: true }).click();
const chosen = (page) => page.locator('input[name=backend]:checked').inputValue();
const settled = (page) => page.evaluate(() => window.attentionPage.settled());

/** @param {Awaited<ReturnType<typeof stateOf>>} got @param {Awaited<ReturnType<typeof stateOf>>} want */
function assertSameNumbers(got, want) {
  assert.deepEqual([got.build.backend, want.build.backend], ['webgpu', 'wasm']);
  assert.deepEqual(got.tokens, want.tokens);
  assertClose(got.weights, want.weights, { ...kClose, what: 'weights' });
  assert.deepEqual(
    got.candidates.map(({ token }) => token),
    want.candidates.map(({ token }) => token),
  );
  for (const name of ['before', 'after']) {
    const of = ({ candidates }) => candidates.map((candidate) => candidate[name]);
    assertClose(of(got), of(want), { ...kClose, what: `next tokens ${name}` });
  }
}

describe('with an adapter', () => {
  const visit = useBrowser();

  test('the switch: the same weights and next tokens to 1e-4, named in the read-out and in the address', () =>
    visit(address({}), {}, async (page) => {
      await unfold(page);
      const wasm = await stateOf(page);
      assert.equal(await chosen(page), 'wasm');
      await choose(page, 'WebGPU');
      await settled(page);
      assert.equal(await chosen(page), 'webgpu');
      assertSameNumbers(await stateOf(page), wasm);
      assert.match(await page.locator('#run').textContent(), /^[\d.]+ .?s · WebGPU · .*swiftshader/i);
      await page.locator('#run').click();
      assert.match(await page.locator('#reasons').textContent(), /[\d.]+ .B in use in the memory of the GPU \(.+\)\./);
      await page.waitForFunction(() => location.hash.includes('backend=webgpu'));
      assert.equal(await page.locator('#gpu-refusal').count(), 0);
      const lens = await page.evaluate(async () => {
        const { attentionPage } = window;
        const map = async (view) => Array.from((await attentionPage.matrixOf(view)).data);
        return { scores: await map({ show: 'scores' }), rollout: await map({ combine: 'rollout' }) };
      });
      await choose(page, 'wasm');
      await settled(page);
      const again = await stateOf(page);
      assert.deepEqual([again.build.backend, again.weights], ['wasm', wasm.weights]);
      const plain = await page.evaluate(async () => {
        const { attentionPage } = window;
        const map = async (view) => Array.from((await attentionPage.matrixOf(view)).data);
        return { scores: await map({ show: 'scores' }), rollout: await map({ combine: 'rollout' }) };
      });
      for (const name of ['scores', 'rollout']) {
        const shown = (values) => values.map((value) => (Number.isNaN(value) ? 0 : value));
        assertClose(shown(lens[name]), shown(plain[name]), { absolute: 1e-4, relative: 1e-5, what: name });
      }
      assert.match(await page.locator('#run').textContent(), /thread/);
    }));

  test('from the address, with heads off and another attention; and the untrained layer', async () => {
    for (const settings of [
      { off: '3.3,4.0', temp: '2', window: '4', cap: '3' },
      { mask: '0', rotary: '0', lens: '1' },
      { model: 'untrained', heads: '4', rope: '1' },
    ]) {
      const states = {};
      for (const backend of ['webgpu', 'wasm']) {
        await visit(address({ ...settings, backend }), {}, async (page) => {
          states[backend] = await stateOf(page);
        });
      }
      assertSameNumbers(states.webgpu, states.wasm);
      if (settings.model) assertClose(states.webgpu.layer.output.data, states.wasm.layer.output.data, kClose);
    }
  });

  test('writing goes on with the same tokens', async () => {
    const written = {};
    for (const backend of ['webgpu', 'wasm']) {
      await visit(address({ backend, write: '4,0.8,0,0.95,7,0' }), {}, async (page) => {
        await page.evaluate(() => window.attentionPage.write());
        written[backend] = await stateOf(page);
      });
    }
    assert.equal(written.webgpu.state.added.length, 4);
    assert.deepEqual(written.webgpu.state.added, written.wasm.state.added);
    assertSameNumbers(written.webgpu, written.wasm);
  });

  test('a device that is refused, and one that goes away: wasm computes, and the reason is told', () =>
    visit(address({}), {}, async (page) => {
      const [worker] = page.workers();
      await worker.evaluate(() => {
        const request = GPUAdapter.prototype.requestDevice;
        GPUAdapter.prototype.requestDevice = async function (...given) {
          if (self.isRefusing) throw new Error('out of devices');
          self.device = await request.apply(this, given);
          return self.device;
        };
        self.isRefusing = true;
      });
      await choose(page, 'WebGPU');
      const refusal = page.locator('#gpu-refusal');
      await refusal.filter({ hasText: 'requestDevice was refused (out of devices)' }).waitFor();
      assert.match(await refusal.textContent(), /^WebGPU can’t be used here: requestDevice/);
      await settled(page);
      assert.deepEqual([await chosen(page), (await stateOf(page)).build.backend], ['wasm', 'wasm']);

      await worker.evaluate(() => {
        self.isRefusing = false;
      });
      await choose(page, 'WebGPU');
      await settled(page);
      assert.equal((await stateOf(page)).build.backend, 'webgpu');
      assert.equal(await refusal.count(), 0);
      await worker.evaluate(() => self.device.destroy());
      await page.locator('#text').fill(`${kText} candle`);
      await refusal.filter({ hasText: 'The GPU went away' }).waitFor();
      await settled(page);
      const after = await stateOf(page);
      assert.deepEqual([await chosen(page), after.build.backend], ['wasm', 'wasm']);
      assert.equal(after.tokens.join('').includes('candle'), true);
      await choose(page, 'WebGPU'); // another device
      await settled(page);
      assert.equal((await stateOf(page)).build.backend, 'webgpu');
    }));
});

describe('without an adapter', () => {
  const visit = useBrowser({}, { webgpu: false });
  // The browser's own words on its console, for whoever asks for an adapter.
  const tolerated = /^warning: (No available adapters|Failed to create WebGPU Context Provider)/;

  for (const way of ['chosen', 'in the address']) {
    test(`${way}: wasm computes, and the reason is told`, () =>
      visit(address(way === 'chosen' ? {} : { backend: 'webgpu' }), { tolerated }, async (page) => {
        if (way === 'chosen') await choose(page, 'WebGPU');
        await page.locator('#gpu-refusal').filter({ hasText: 'no adapter answered' }).waitFor();
        await settled(page);
        const { build, weights, state } = await stateOf(page);
        assert.deepEqual([build.backend, state.backend, await chosen(page)], ['wasm', 'wasm', 'wasm']);
        assert.ok(weights.length > 0);
        assert.equal(await page.evaluate(() => location.hash.includes('backend')), false);
        assert.equal(await page.locator('#failure').isVisible(), false);
      }));
  }

  for (const [what, arrange, reason] of [
    ['no WebGPU', () => Object.defineProperty(Navigator.prototype, 'gpu', { value: undefined }), /has no WebGPU/],
    [
      'no secure context',
      () => {
        Object.defineProperty(Navigator.prototype, 'gpu', { value: undefined });
        Object.defineProperty(window, 'isSecureContext', { value: false });
      },
      /secure context/,
    ],
  ]) {
    test(`${what}: the switch is off, with the reason`, () =>
      visit(address({}), { arrange: (page) => page.addInitScript(arrange) }, async (page) => {
        assert.equal(await page.locator('input[name=backend][value=webgpu]').isDisabled(), true);
        assert.match(await page.locator('#gpu-refusal').textContent(), reason);
        assert.equal((await stateOf(page)).build.backend, 'wasm');
      }));
  }
});
