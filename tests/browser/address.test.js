// Everything that is chosen is in the address, and comes up from it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashFromSettings, kDefaults, kSettings, settingsFromHash } from '../../web/src/state.js';
import { stateOf, useBrowser } from './support.js';

const visit = useBrowser();

/** A value for each setting that is none of the defaults. */
const kOther = {
  ...{ model: 'untrained', backend: 'webgpu' },
  text: 'a & b = 100 %',
  added: [300, 17],
  off: [[2, 2]],
  ...{ heads: 2, causal: true, rope: true, seed: 5 },
  at: [3, 1],
  combine: 'mean',
  chosen: [
    [0, 1],
    [4, 2],
  ],
  ...{ show: 'change', range: 'row', hideFirst: true, mass: 0.9, arcs: 8, rows: [2, 5], add: 'mean' },
  ...{ newOnly: true, zoom: [1, 2, 6], lens: true },
  writing: { count: 9, temperature: 0.5, topK: 20, topP: 0.9, seed: 77, stop: true },
  ...{ mask: false, scale: 2, temperature: 0.5, rotary: false, softcap: 5, window: 8 },
};

test('each setting is written and read, alone and with all others', () => {
  assert.deepEqual(Object.keys(kOther).sort(), [...kSettings].sort());
  assert.equal(hashFromSettings(kDefaults), '');
  assert.deepEqual(settingsFromHash(''), kDefaults);
  for (const [name, value] of Object.entries(kOther)) {
    const settings = { ...kDefaults, [name]: value };
    const hash = hashFromSettings(settings);
    assert.notEqual(hash, '', name);
    assert.deepEqual(settingsFromHash(hash), settings, name);
  }
  assert.deepEqual(settingsFromHash(hashFromSettings(kOther)), kOther);
  const locked = { ...kDefaults, focus: { row: 7, column: 3 }, locked: true };
  assert.deepEqual(settingsFromHash(hashFromSettings(locked)), locked);
  assert.equal(hashFromSettings({ ...kDefaults, model: 'own' }), '', 'a reader’s own model is nobody else’s');
});

test('nonsense is the default', () => {
  const hash =
    '#added=1.x&view=all&show=7&mass=2&mass=&arcs=-1&rows=a&zoom=1,2&write=1,2,3&scale=x&temp=0&cap=-1&window=-2&cell=1&backend=gpu';
  assert.deepEqual(settingsFromHash(hash), kDefaults);
});

test('a deep link brings all of it up, and the page writes the same address again', async () => {
  const { model, backend, text, heads, causal, rope, seed, ...trained } = kOther;
  const wanted = { ...kDefaults, ...trained, mask: true };
  const hash = hashFromSettings({ ...wanted, focus: { row: 33, column: 5 }, locked: true });
  await visit(hash, {}, async (page) => {
    const {
      state: { peek, ...state },
      tokens,
    } = await stateOf(page);
    assert.equal(peek, null);
    assert.deepEqual({ ...state, zoom: wanted.zoom }, { ...wanted, focus: state.focus, locked: true });
    assert.equal(tokens.length, 36);
    await page.getByLabel('Leave the first token out').click();
    await page.getByLabel('Leave the first token out').click();
    await page.waitForFunction((want) => location.hash === want, hashFromSettings({ ...state }));
    assert.deepEqual(settingsFromHash(new URL(page.url()).hash), { ...state });
  });
});
