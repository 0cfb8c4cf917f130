// Several heads as one matrix, and what tames clutter: against the float64 forward.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClose } from '../support/tensors.js';
import { matrixOf, shippedOracle } from './shipped-oracle.js';
import { stateOf, useBrowser } from './support.js';

const visit = useBrowser();
const kTolerance = { absolute: 1e-4 };
const idsOf = (page) => page.evaluate(() => window.attentionPage.run.ids);

/** Visible cells of what is shown against a function of row and key; the others must have no number. */
function assertMatrix({ rows, from }, want, isThere = (r, c) => c <= r) {
  rows.forEach((row, i) => {
    row.forEach((value, c) => {
      const r = from + i;
      if (isThere(r, c)) assertClose([value], [want(r, c)], { ...kTolerance, what: `row ${r}, key ${c}` });
      else assert.equal(value, null, `row ${r}, key ${c}`);
    });
  });
}

test('mean and maximum of all heads, and of chosen ones', async () => {
  await visit('', {}, async (page) => {
    const { attention } = shippedOracle(await idsOf(page));
    const all = attention.flat();
    await page.getByRole('radio', { name: 'Mean' }).check();
    assertMatrix(await matrixOf(page), (r, c) => all.reduce((sum, head) => sum + head[r][c], 0) / 20);
    assert.equal(await page.locator('#head-title').textContent(), 'Mean of all 20 heads');
    await page.getByRole('radio', { name: 'Maximum' }).check();
    assertMatrix(await matrixOf(page), (r, c) => Math.max(...all.map((head) => head[r][c])));
    const thumbnail = (name) => page.getByRole('checkbox', { name: new RegExp(`^${name}`) });
    assert.equal(await page.locator('#head-grid').getByRole('checkbox', { checked: true }).count(), 20);
    await thumbnail('L2·H2').click();
    await thumbnail('L4·H0').click();
    await thumbnail('L3·H3').click();
    await thumbnail('L4·H0').click();
    const some = [attention[2][2], attention[3][3]];
    assertMatrix(await matrixOf(page), (r, c) => Math.max(some[0][r][c], some[1][r][c]));
    assert.equal(await page.locator('#head-title').textContent(), 'Maximum of L2·H2, L3·H3');
    assert.match(await page.locator('#readout').textContent(), /^Maximum of L2·H2, L3·H3 · /);
    await page.waitForURL(/view=max&of=2\.2%2C3\.3/);
    await page.getByRole('button', { name: 'all heads', exact: true }).click();
    assert.deepEqual((await stateOf(page)).state.chosen, []);
    await page.getByRole('radio', { name: 'One head' }).check();
    assertMatrix(await matrixOf(page), (r, c) => attention[4][0][r][c]);
  });
});

test('rollout: the layers’ means with the identity, multiplied', async () => {
  await visit('#view=rollout', {}, async (page) => {
    const { attention } = shippedOracle(await idsOf(page));
    const T = attention[0][0].length;
    let rows = Array.from({ length: T }, (_, i) => Array.from({ length: T }, (_, j) => Number(i === j)));
    for (const heads of attention) {
      const mixed = rows.map((_, i) =>
        rows.map((_, j) => heads.reduce((s, h) => s + h[i][j], 0) / 8 + (i === j ? 0.5 : 0)),
      );
      const before = rows;
      rows = mixed.map((weights) => before.map((_, j) => weights.reduce((sum, w, k) => sum + w * before[k][j], 0)));
    }
    assertMatrix(await matrixOf(page), (r, c) => rows[r][c]);
    assert.equal(await page.locator('#head-title').textContent(), 'Rollout of 5 layers');
    assert.equal(await page.getByRole('radio', { name: 'Scores', exact: true }).isDisabled(), true);
  });
});

test('scores: q·k over √d before the mask and softmax, on a scale with two ends', async () => {
  await visit('#head=3.1', {}, async (page) => {
    await page.getByRole('radio', { name: 'Scores', exact: true }).check();
    const { scores } = shippedOracle(await idsOf(page));
    const shown = await matrixOf(page);
    assertMatrix(shown, (r, c) => scores[3][1][r][c]);
    const [low, high] = await page.locator('#legend .scale > .number').allTextContents();
    assert.deepEqual([low, high], [`−${shown.extreme.toFixed(3)}`, `+${shown.extreme.toFixed(3)}`]);
    const value = scores[3][1][33][16];
    const text = `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`;
    assert.ok((await page.locator('#readout').textContent()).endsWith(`: ${text}`));
  });
});

test('without the first token each row adds up to 1 again; the thumbnails follow', async () => {
  await visit('#head=4.1', {}, async (page) => {
    const corner = () =>
      page.evaluate(() => {
        const canvas = document.querySelectorAll('.thumbnail canvas')[17];
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
        copy.drawImage(canvas, 0, 0);
        return copy.getImageData(0, canvas.height - 1, 1, 1).data[3];
      });
    assert.equal(await corner(), 255);
    await page.getByLabel('Leave the first token out').click();
    const shown = await matrixOf(page);
    const head = shippedOracle(await idsOf(page)).attention[4][1];
    assertMatrix(
      shown,
      (r, c) => head[r][c] / (1 - head[r][0]),
      (r, c) => c > 0 && c <= r,
    );
    await page.getByRole('application').focus();
    await page.keyboard.press('Home');
    assert.match(await page.locator('#readout').textContent(), /left out as the first token$/);
    assert.equal(await corner(), 0, 'nothing is drawn for the first token');
  });
});

test('the heaviest weights up to a share: the fewest that reach it', async () => {
  await visit('#head=1.1&mass=0.8', {}, async (page) => {
    const head = shippedOracle(await idsOf(page)).attention[1][1];
    const { rows } = await matrixOf(page);
    let left = 0;
    rows.forEach((row, r) => {
      const kept = row.flatMap((value, c) => (value === null ? [] : [[value, c]]));
      const sorted = head[r].slice(0, r + 1).sort((a, b) => b - a);
      let reached = 0;
      const count =
        1 +
        sorted.findIndex((weight) => {
          reached += weight;
          return reached >= 0.8 - 1e-6;
        });
      assert.equal(kept.length, count, `row ${r}`);
      for (const [value, c] of kept) assertClose([value], [head[r][c]], kTolerance);
      left += r + 1 - count;
    });
    assert.ok(left > 150, `${left} left out`);
    assert.ok(await page.locator('#legend').getByText('left out').isVisible(), 'the legend has what is blank');
    await page.getByLabel('Heaviest weights up to').press('End');
    assert.equal((await stateOf(page)).state.mass, 1);
  });
});

test('colours to the maximum of each row, which the legend names', async () => {
  await visit('#head=1.1&range=row&cell=30.4', {}, async (page) => {
    const { rows } = await matrixOf(page);
    const most = rows[30].indexOf(Math.max(...rows[30].filter((value) => value !== null)));
    assert.equal(await page.locator('#highest').textContent(), rows[30][most].toFixed(3));
    assert.match(await page.locator('#legend').textContent(), /the maximum of row 30/);
    const color = await page.evaluate((column) => {
      const [base, marks] = document.getElementById('map').children;
      const cell = Number(marks.dataset.cell) * devicePixelRatio;
      const { data } = base
        .getContext('2d')
        .getImageData(base.width - (34 - column - 0.25) * cell, base.height - (34 - 30 - 0.25) * cell, 1, 1);
      return Array.from(data);
    }, most);
    assert.deepEqual(color, [253, 234, 69, 255]);
  });
});

test('rows added up: the sum or the mean of the chosen ones, labelled', async () => {
  await visit('#head=4.1&cell=12.0', {}, async (page) => {
    const head = shippedOracle(await idsOf(page)).attention[4][1];
    await page.getByRole('button', { name: 'Add up rows, from row 12' }).click();
    await page
      .locator('#tokens .token')
      .nth(20)
      .click({ modifiers: ['Shift'] });
    const panel = page.locator('#row-panel');
    assert.equal(await panel.locator('caption').textContent(), 'L4·H1 · sum of rows 12, 20');
    const values = () => panel.locator('tbody td:last-child').allTextContents();
    const sum = head[12].map((weight, c) => weight + head[20][c]);
    assert.deepEqual(
      (await values()).slice(0, 21),
      sum.slice(0, 21).map((value) => value.toFixed(3)),
    );
    assert.equal(await panel.locator('tfoot td').last().textContent(), '2.000');
    await page.getByRole('radio', { name: 'Mean' }).last().check();
    assert.equal(await panel.locator('caption').textContent(), 'L4·H1 · mean of rows 12, 20');
    assert.deepEqual(
      (await values()).slice(0, 21),
      sum.slice(0, 21).map((value) => (value / 2).toFixed(3)),
    );
    await page.waitForURL(/rows=12%2C20&add=mean/);
    await page.getByRole('button', { name: 'One row' }).click();
    assert.match(await panel.locator('caption').textContent(), /^L4·H1 · row 12 /);
  });
});
