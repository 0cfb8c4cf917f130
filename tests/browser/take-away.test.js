// What is saved is what is shown: read again and compared.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { interpolateLab } from 'd3-interpolate';
import { assertClose } from '../support/tensors.js';
import { boxesOf, colorOf, fieldOf, parsed, pixelsOf, rgb, saved, textsOf } from './saved.js';
import { stateOf, useBrowser, weightAt } from './support.js';

const visit = useBrowser();

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
    const cells = boxesOf(text).filter(({ row }) => row >= 0);
    assert.equal(cells.length, (34 * 35) / 2);
    for (const { fill, row, key } of cells) assert.equal(fill, colorOf(weightAt(state, [3, 3], row, key)));
    assert.match(text, />L3·H3<.*>Weight<.*>1\.000</s);
    const png = await saved(page, 'PNG');
    assert.equal(png.name, 'attention-L3H3.png');
    const wanted = cells.filter(({ row }) => row % 7 === 5);
    const pixels = await pixelsOf(page, png.bytes, wanted);
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
  });
});

/** The weights of a row, null where the mask hides them. */
const rowOf = (state, head, row) => state.tokens.map((_, c) => (c > row ? null : weightAt(state, head, row, c)));

test('the row in focus: CSV, SVG and PNG', async () => {
  await visit('#head=4.1&cell=20.3', {}, async (page) => {
    const state = await stateOf(page);
    const weights = rowOf(state, [4, 1], 20);
    const csv = await saved(page, 'CSV', 'Row in focus');
    assert.equal(csv.name, 'attention-L4H1-row-20.csv');
    assert.deepEqual(
      parsed(csv.bytes.toString()).slice(1),
      state.tokens.map((token, i) => [String(i), token, fieldOf(weights[i])]),
    );
    const svg = await saved(page, 'SVG', 'Row in focus');
    const bars = boxesOf(svg.bytes.toString()).filter(({ line }) => line);
    const most = Math.max(...weights);
    assert.equal(bars.length, 21);
    bars.forEach(({ width }, i) => {
      assert.ok(Math.abs(width - Math.max(0.5, (300 * weights[i]) / most)) < 0.006, `bar ${i} of ${width}`);
    });
    const texts = textsOf(svg.bytes.toString());
    weights.slice(0, 21).forEach((weight, i) => {
      assert.ok(texts.includes(`${i} ${state.tokens[i]}`) && texts.includes(weight.toFixed(3)));
    });
    const png = await saved(page, 'PNG', 'Row in focus');
    const [longest] = bars.sort((a, b) => b.width - a.width);
    assert.deepEqual(await pixelsOf(page, png.bytes, [longest]), [rgb('#b3390f')]);
  });
});

test('next tokens before and after a change: JSON, SVG and PNG', async () => {
  await visit('#off=4.0,4.2,4.3', {}, async (page) => {
    const { candidates } = await stateOf(page);
    const json = await saved(page, 'JSON', 'Next tokens');
    const { row, next } = JSON.parse(json.bytes);
    assert.deepEqual([row, next], [33, candidates]);
    const svg = (await saved(page, 'SVG', 'Next tokens')).bytes.toString();
    const bars = boxesOf(svg).filter(({ line }) => line);
    const shares = candidates.flatMap(({ before, after }) => [before, after]);
    assert.equal(bars.length, shares.length);
    bars.forEach(({ width }, i) => {
      assert.ok(Math.abs(width - Math.max(0.5, 300 * shares[i])) < 0.006, `bar ${i} of ${width}`);
    });
    assert.ok(textsOf(svg).some((text) => /as trained/.test(text)));
    const { token, before } = candidates.toSorted((a, b) => b.before - a.before)[0];
    assert.ok(textsOf(svg).includes(token) && textsOf(svg).includes(`${(100 * before).toFixed(1)} %`));
    const png = await saved(page, 'PNG', 'Next tokens');
    const longest = bars[shares.indexOf(Math.max(...candidates.map((each) => each.before)))];
    assert.deepEqual(await pixelsOf(page, png.bytes, [longest]), [rgb('#8f8a80')]);
  });
});

test('all heads: CSV, SVG and PNG, each head in its place', async () => {
  await visit('', {}, async (page) => {
    const state = await stateOf(page);
    const lines = parsed((await saved(page, 'CSV', 'All heads')).bytes.toString()).slice(1);
    assert.equal(lines.length, (20 * 34 * 35) / 2);
    for (const [layer, head, row, key, weight] of lines.map((line) => line.map(Number)))
      assert.equal(weight, weightAt(state, [layer, head], row, key));
    const svg = (await saved(page, 'SVG', 'All heads')).bytes.toString();
    const images = [...svg.matchAll(/<image x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"/g)].map((found) =>
      found.slice(1).map(Number),
    );
    assert.equal(images.length, 20);
    assert.ok(textsOf(svg).includes('L2·H3') && textsOf(svg).includes('1.000'), 'names, and the end of the scale');
    const png = await saved(page, 'PNG', 'All heads');
    const wanted = images.map(([x, y, side], i) => ({
      box: { x: x + (19 * side) / 34, y: y + (20 * side) / 34, width: side / 34, height: side / 34 },
      color: colorOf(weightAt(state, [Math.floor(i / 4), i % 4], 20, 19)),
    }));
    assert.deepEqual(
      await pixelsOf(
        page,
        png.bytes,
        wanted.map(({ box }) => box),
      ),
      wanted.map(({ color }) => color),
    );
  });
});

test('tokens and arcs: CSV, JSON and PNG; of a long text in several lines', async () => {
  await visit('#cell=20.3&arcs=3', {}, async (page) => {
    const state = await stateOf(page);
    const weights = rowOf(state, [4, 2], 20);
    const csv = await saved(page, 'CSV', 'Tokens and arcs');
    assert.equal(csv.name, 'attention-L4H2-tokens-20.csv');
    assert.deepEqual(
      parsed(csv.bytes.toString())
        .slice(1)
        .map((line) => line[2]),
      weights.map(fieldOf),
    );
    const { values, arcs, rows } = JSON.parse((await saved(page, 'JSON', 'Tokens and arcs')).bytes);
    assert.deepEqual([rows, values], [[20], weights]);
    const sorted = weights.map((value, column) => ({ column, value })).sort((a, b) => b.value - a.value);
    assert.deepEqual(arcs, sorted.slice(0, 3));
    const svg = (await saved(page, 'SVG', 'Tokens and arcs')).bytes.toString();
    const [asks] = boxesOf(svg).slice(1);
    const png = await saved(page, 'PNG', 'Tokens and arcs');
    const corner = { x: asks.x + 1, y: asks.y + 1, width: 0, height: 0 }; // beside the letters
    assert.deepEqual(await pixelsOf(page, png.bytes, [corner]), [rgb('#b3390f')]);
    assert.deepEqual(textsOf(svg).slice(1, 35), state.tokens);
    const places = [...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)" font-size="13"/g)];
    assert.ok(places.every(([, x]) => Number(x) < 720));
    assert.ok(new Set(places.map(([, , y]) => y)).size > 1, 'more than one line');
  });
});

test('the layers’ next tokens: CSV, JSON, SVG and PNG, without opening them', async () => {
  await visit('#cell=20.3', {}, async (page) => {
    const lens = await page.evaluate(() => window.attentionPage.lensAt(20));
    assert.deepEqual(
      lens.map(({ tokens }) => tokens.length),
      [5, 5, 5, 5, 5, 5],
    );
    const json = await saved(page, 'JSON', 'Layer by layer');
    assert.equal(json.name, 'attention-lens-20.json');
    assert.deepEqual(JSON.parse(json.bytes).lens, lens);
    const csv = await saved(page, 'CSV', 'Layer by layer');
    assert.deepEqual(
      parsed(csv.bytes.toString()).slice(1),
      lens.flatMap(({ layer, tokens }) =>
        tokens.map(({ id, token, probability }, i) => [layer, i + 1, id, token, probability].map(String)),
      ),
    );
    const texts = textsOf((await saved(page, 'SVG', 'Layer by layer')).bytes.toString());
    const percent = (share) => `${(100 * share).toFixed(share >= 0.9995 ? 0 : 1)} %`;
    assert.deepEqual(
      texts.slice(1),
      lens.flatMap(({ layer, tokens }) => [
        layer === 0 ? 'embedding' : `layer ${layer - 1}`,
        ...tokens.flatMap(({ token, probability }) => [token, percent(probability)]),
      ]),
    );
    const { bytes } = await saved(page, 'PNG', 'Layer by layer');
    assert.deepEqual(await pixelsOf(page, bytes, [{ x: 2, y: 2, width: 0, height: 0 }]), [rgb('#fbfaf8')]);
    assert.ok(bytes.length > 8000, `${bytes.length} bytes`);
  });
});

test('what has changed: CSV, JSON, and SVG and PNG in the colours of both signs', async () => {
  await visit('#show=change&temp=0.5&head=2.3', {}, async (page) => {
    await page.evaluate(() => window.attentionPage.settled());
    const shown = await page.evaluate(() => {
      const { data, columns, extreme } = window.attentionPage.matrix;
      return { data: Array.from(data, (value) => (Number.isNaN(value) ? null : value)), columns, extreme };
    });
    const at = (row, key) => shown.data[row * shown.columns + key];
    const json = await saved(page, 'JSON');
    assert.equal(json.name, 'attention-L2H3-change.json');
    const { rows, whatIf, show } = JSON.parse(json.bytes);
    assert.deepEqual([rows.flat(), whatIf.temperature, show], [shown.data, 0.5, 'change']);
    const lines = parsed((await saved(page, 'CSV')).bytes.toString()).slice(1);
    assert.deepEqual(
      lines.flatMap((line) => line.slice(2)),
      shown.data.map(fieldOf),
    );
    const cells = boxesOf((await saved(page, 'SVG')).bytes.toString()).filter(({ row }) => row >= 0);
    const [below, above] = [interpolateLab('#2b6bbd', '#fbfaf8'), interpolateLab('#fbfaf8', '#b04a00')];
    const colorFor = (value) => {
      const t = Math.round(((value / shown.extreme + 1) / 2) * 255) / 255;
      return t < 0.5 ? below(2 * t) : above(2 * t - 1);
    };
    assert.equal(cells.length, (34 * 35) / 2);
    for (const { fill, row, key } of cells) assert.equal(fill, colorFor(at(row, key)), `${row}, ${key}`);
    const far = cells.filter(({ row, key }) => Math.abs(at(row, key)) > shown.extreme / 2);
    assert.ok(far.some(({ row, key }) => at(row, key) > 0) && far.some(({ row, key }) => at(row, key) < 0));
    const png = await saved(page, 'PNG');
    assert.deepEqual(
      await pixelsOf(page, png.bytes, far),
      far.map(({ fill }) => fill),
    );
  });
});

test('of 1,024 tokens: the matrix as a picture and as numbers, without holding the page up', async () => {
  const text = encodeURIComponent('Mr. Darcy and Miss Bingley walked to Netherfield and were pleased. '.repeat(47));
  const watched = (page) =>
    page.addInitScript(() => {
      window.long = [];
      new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) window.long.push(duration);
      }).observe({ type: 'longtask' });
    });
  await visit(`#text=${text}`, { arrange: watched }, async (page) => {
    await page.evaluate(() => window.attentionPage.measured());
    const T = await page.evaluate(() => window.attentionPage.run.tokens.length);
    await page.locator('#take-away summary').click();
    await page.evaluate(() => {
      window.long.length = 0;
    });
    const { rows } = JSON.parse((await saved(page, 'JSON')).bytes);
    assert.deepEqual([rows.length, rows[T - 1].length], [T, T]);
    const lines = (await saved(page, 'CSV')).bytes.toString().split('\r\n');
    assert.equal(lines.length, T + 1);
    const svg = (await saved(page, 'SVG')).bytes.toString();
    assert.match(svg, /<image [^>]*href="data:image\/png;base64,/);
    const long = await page.evaluate(() => window.long);
    // Other programs may take the processor away now and then; a file in one go would take more than all of them.
    assert.ok(Math.max(0, ...long) < 200, `tasks of ${long} ms`);
  });
});
