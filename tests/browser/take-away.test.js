// What is saved is what is shown: read again and compared.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { interpolateCividis } from 'd3-scale-chromatic';
import { assertClose } from '../support/tensors.js';
import { stateOf, useBrowser, weightAt } from './support.js';

const visit = useBrowser();

async function saved(page, format, kind = 'Matrix') {
  const fold = page.locator('#take-away');
  if ((await fold.getAttribute('open')) === null) await fold.locator('summary').click();
  await page.getByLabel('What', { exact: true }).selectOption(kind);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: format, exact: true }).click(),
  ]);
  return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) };
}

/** Fields of CSV, with quotes. */
function parsed(text) {
  return text
    .split('\r\n')
    .map((line) =>
      [...`,${line}`.matchAll(/,("(?:[^"]|"")*"|[^",]*)/g)].map(([, field]) =>
        field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field,
      ),
    );
}

/** The colour that the scale has for a weight, as a picture has it. */
const colorOf = (weight) => interpolateCividis(Math.round(weight * 255) / 255);

test('the matrix as JSON and CSV, named by its head: every number, and none where the mask hides', async () => {
  await visit('#head=2.3&off=4.2', {}, async (page) => {
    const state = await stateOf(page);
    const { tokens, ids } = state;
    const json = await saved(page, 'JSON');
    assert.equal(json.name, 'attention-L2H3.json');
    const { rows, ...rest } = JSON.parse(json.bytes);
    assert.deepEqual([rest.tokens, rest.ids, rest.off, rest.text], [tokens, ids, [[4, 2]], state.state.text]);
    assert.deepEqual([rest.heads, rest.combine, rest.show], [[[2, 3]], 'one', 'weights']);
    const csv = await saved(page, 'CSV');
    assert.equal(csv.name, 'attention-L2H3.csv');
    const [head, ...lines] = parsed(csv.bytes.toString());
    assert.deepEqual(head, ['row', 'token', ...tokens.map((token, i) => `${i} ${token}`)]);
    assert.deepEqual([rows.length, lines.length], [tokens.length, tokens.length]);
    rows.forEach((row, r) => {
      assert.deepEqual(lines[r].slice(0, 2), [String(r), tokens[r]]);
      row.forEach((weight, c) => {
        assert.equal(weight, c > r ? null : weightAt(state, [2, 3], r, c));
        assert.equal(lines[r][c + 2], c > r ? '' : String(weight));
      });
    });
  });
});

test('the matrix as SVG and PNG: each cell in the colour of its weight', async () => {
  await visit('#head=3.3', {}, async (page) => {
    const state = await stateOf(page);
    const svg = await saved(page, 'SVG');
    assert.equal(svg.name, 'attention-L3H3.svg');
    const text = svg.bytes.toString();
    const cells = [
      ...text.matchAll(
        /<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="([^"]+)" data-row="(\d+)" data-key="(\d+)"/g,
      ),
    ].map(([, x, y, width, height, fill, row, key]) => ({
      ...{ x: Number(x), y: Number(y), width: Number(width), height: Number(height), fill },
      ...{ row: Number(row), key: Number(key) },
    }));
    assert.equal(cells.length, (34 * 35) / 2);
    for (const { fill, row, key } of cells) assert.equal(fill, colorOf(weightAt(state, [3, 3], row, key)));
    assert.match(text, />L3·H3<.*>Weight<.*>1\.000</s);
    const png = await saved(page, 'PNG');
    assert.equal(png.name, 'attention-L3H3.png');
    const wanted = cells.filter(({ row }) => row % 7 === 5);
    const pixels = await page.evaluate(
      async ([data, places]) => {
        const whole = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
        const image = await createImageBitmap(new Blob([whole]));
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext('2d', { willReadFrequently: true });
        context.drawImage(image, 0, 0);
        return places.map(({ x, y, width, height }) => {
          const [red, green, blue] = context.getImageData(2 * x + width, 2 * y + height, 1, 1).data;
          return `rgb(${red}, ${green}, ${blue})`;
        });
      },
      [png.bytes.toString('base64'), wanted],
    );
    assert.deepEqual(
      pixels,
      wanted.map(({ fill }) => fill),
    );
  });
});

test('rows, next tokens, arcs and all heads: as numbers and as drawings', async () => {
  await visit('#rows=20,28&cell=33.16', {}, async (page) => {
    const state = await stateOf(page);
    const sum = state.tokens.map((_, c) => weightAt(state, [4, 2], 20, c) + weightAt(state, [4, 2], 28, c));
    const row = await saved(page, 'JSON', 'Row in focus');
    assert.equal(row.name, 'attention-L4H2-row-20-28.json');
    const { rows, add, values } = JSON.parse(row.bytes);
    assert.deepEqual([rows, add], [[20, 28], 'sum']);
    assertClose(values.slice(0, 29), sum.slice(0, 29), { absolute: 1e-6 });
    assert.deepEqual(values.slice(29), [null, null, null, null, null]);
    const next = await saved(page, 'CSV', 'Next tokens');
    assert.equal(next.name, 'attention-next-33.csv');
    assert.deepEqual(
      parsed(next.bytes.toString()).slice(1),
      state.candidates.map(({ id, token, before, after }) => [id, token, before, after].map(String)),
    );
    const arcs = await saved(page, 'SVG', 'Tokens and arcs');
    const keys = [...arcs.bytes.toString().matchAll(/<path [^>]*data-key="(\d+)"/g)].map(([, key]) => Number(key));
    const heaviest = state.tokens
      .map((_, c) => [weightAt(state, [4, 2], 33, c), c])
      .sort((a, b) => b[0] - a[0])
      .slice(0, 5)
      .map(([, c]) => c);
    assert.deepEqual(keys, heaviest);
    const all = await saved(page, 'JSON', 'All heads');
    assert.equal(all.name, 'attention-heads.json');
    const { heads } = JSON.parse(all.bytes);
    assert.equal(heads.length, 20);
    for (const { layer, head, weights } of heads) assert.equal(weights[30][4], weightAt(state, [layer, head], 30, 4));
    for (const kind of ['Row in focus', 'Next tokens', 'All heads', 'Tokens and arcs']) {
      const { bytes } = await saved(page, 'PNG', kind);
      assert.deepEqual([...bytes.subarray(1, 4)], [...Buffer.from('PNG')]);
      assert.ok(bytes.length > 3000, `${kind}: ${bytes.length} bytes`);
    }
  });
});
