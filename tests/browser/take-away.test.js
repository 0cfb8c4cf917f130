// What is saved is what is shown.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { stateOf, useBrowser, weightAt } from './support.js';

const visit = useBrowser();

async function saved(page, name) {
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()]);
  return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) };
}

test('the numbers of the chosen head, named by it', async () => {
  await visit('#head=2.3&off=4.2', {}, async (page) => {
    const state = await stateOf(page);
    const { name, bytes } = await saved(page, 'numbers (JSON)');
    assert.equal(name, 'attention-L2H3.json');
    const { weights, tokens, ids, ...rest } = JSON.parse(bytes);
    assert.deepEqual([tokens, ids], [state.tokens, state.ids]);
    assert.deepEqual([rest.layer, rest.head, rest.off, rest.text], [2, 3, [[4, 2]], state.state.text]);
    weights.forEach((row, r) => {
      row.forEach((weight, c) => {
        assert.equal(weight, weightAt(state, [2, 3], r, c));
      });
    });
    assert.equal(weights.length, tokens.length);
  });
});

test('the picture of the chosen head, in the size of its matrix', async () => {
  await visit('#head=3.3', {}, async (page) => {
    const { name, bytes } = await saved(page, 'picture (PNG)');
    assert.equal(name, 'attention-L3H3.png');
    const size = await page
      .locator('#map canvas')
      .first()
      .evaluate(({ width, height }) => [width, height]);
    assert.deepEqual([bytes.readUInt32BE(16), bytes.readUInt32BE(20)], size);
    const bright = await page.evaluate(async (data) => {
      const whole = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
      const image = await createImageBitmap(new Blob([whole]));
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext('2d');
      context.drawImage(image, 0, 0);
      const pixels = context.getImageData(0, 0, image.width, image.height).data;
      let count = 0;
      for (let i = 0; i < pixels.length; i += 4) count += pixels[i] > 220 && pixels[i + 2] < 100 ? 1 : 0;
      return count;
    }, bytes.toString('base64'));
    assert.ok(bright > 1000, `${bright} pixels of the upper end of the scale: the line of a previous-token head`);
  });
});
