// The reader's own model: picked or dropped, read on this device, refused with a reason.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configs } from '../support/models.js';
import { transformer } from '../support/oracle-transformer.js';
import { assertClose } from '../support/tensors.js';
import { folderOf, json, vocabulary } from './own-files.js';
import { measuresOf, stateOf, useBrowser } from './support.js';

const visit = useBrowser();
const kText = 'Elizabeth was pleased';

const alertOf = (page) => page.getByRole('alert').textContent();

for (const name of ['GPT-2', 'LLaMA, grouped heads, tied']) {
  test(`${name}: picked files run, equal to the float64 forward, with size and memory`, async () => {
    const config = { ...configs[name], ...vocabulary };
    const { weights, files } = folderOf(config);
    await visit(`#text=${kText}`, {}, async (page) => {
      await page.locator('#own-files').setInputFiles(files);
      await page.waitForFunction(() => window.attentionPage.state.model === 'own');
      const state = await stateOf(page);
      const want = transformer(config, weights, state.ids);
      assertClose(state.weights, want.attention.flat(9), { absolute: 1e-4 });
      assert.deepEqual([state.model.layers, state.model.heads], [3, config.n_head ?? config.num_attention_heads]);
      assert.equal(await page.getByRole('radio', { name: 'Your own' }).isChecked(), true);
      assert.equal(await page.locator('.thumbnail').count(), 3 * state.heads);
      assert.equal(await page.locator('.austen:visible').count(), 0, 'nothing is said of the other model');
      const { scores, effects } = await measuresOf(page);
      assert.equal(scores.previous.length, 3);
      assert.ok(effects['[]'].copying < 0.1, 'a random model copies nothing');
      await page.locator('details.run summary').click();
      assert.match(await page.locator('#reasons').textContent(), /[\d.]+ MB of weights, [\d.]+ MB in memory/);
      await page.getByRole('radio', { name: 'Trained', exact: true }).check();
      assert.equal((await stateOf(page)).layers, 5);
    });
  });
}

test('a folder that is dropped', async () => {
  const { files } = folderOf({ ...configs['GPT-2'], ...vocabulary });
  await visit('', {}, async (page) => {
    await page.evaluate(
      (given) => {
        const transfer = new DataTransfer();
        for (const { name, bytes } of given) {
          transfer.items.add(new File([Uint8Array.from(atob(bytes), (sign) => sign.charCodeAt(0))], name));
        }
        const target = document.getElementById('drop');
        const event = (type) => new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true });
        target.dispatchEvent(event('dragover'));
        if (!target.classList.contains('over')) throw new Error('the target does not show that it takes files');
        target.dispatchEvent(event('drop'));
      },
      files.map(({ name, buffer }) => ({ name, bytes: buffer.toString('base64') })),
    );
    await page.waitForFunction(() => window.attentionPage.state.model === 'own');
    assert.equal((await stateOf(page)).model.layers, 3);
  });
});

const kRefused = {
  'a file is missing': [
    ({ files }) => files.filter(({ name }) => name !== 'tokenizer.json'),
    /tokenizer\.json not among/,
  ],
  'no weights': [({ files }) => files.slice(0, 3), /\*\.safetensors not among the 3 files/],
  'another kind of model': [
    ({ files }) => [json('config.json', { model_type: 'bert' }), ...files.slice(1)],
    /model_type.*"?bert/,
  ],
  'a tensor is missing': [({ files }) => files.slice(0, 4), /missing|must hold|h\.\d/],
  'a config that is no JSON': [
    ({ files }) => [{ ...files[0], buffer: Buffer.from('{') }, ...files.slice(1)],
    /config\.json is not JSON/,
  ],
  'weights that are cut off': [
    ({ files }) => [...files.slice(0, 4), { ...files[4], buffer: files[4].buffer.subarray(0, 5000) }],
    /readSafetensors|bytes/,
  ],
  'a tokenizer with more tokens than the model': [
    () => folderOf(configs['GPT-2']).files,
    /tokens\[1\] must be an integer of 0 to 34/,
  ],
};

test('what is not supported is refused with its reason, and the model before stays', async () => {
  await visit('', {}, async (page) => {
    const before = await stateOf(page);
    for (const [name, [choose, reason]] of Object.entries(kRefused)) {
      await page.locator('#own-files').setInputFiles(choose(folderOf({ ...configs['GPT-2'], ...vocabulary })));
      await page.getByText(/^This model can’t be shown/).waitFor();
      assert.match(await alertOf(page), reason, name);
      assert.equal(await page.locator('#progress').isHidden(), true);
      assert.deepEqual((await stateOf(page)).weights, before.weights);
    }
    await page.getByLabel('Your text').fill('Emma was');
    await stateOf(page);
    assert.equal(await page.locator('#failure').isHidden(), true);
  });
});
