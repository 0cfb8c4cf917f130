// Architecture, code and checkpoint: what can be set, run, measured and answered.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClose } from '../support/tensors.js';
import { cellsOf, goTo, numberOf, numbersIn, oracleSteps, settledLesson } from './lesson-support.js';
import { stateOf, useBrowser } from './support.js';

const visit = useBrowser();

const factsOf = async (page) => {
  const facts = page.locator('#part-facts');
  const values = await facts.locator('dd').allTextContents();
  return { title: await facts.locator('h3').textContent(), parameters: numberOf(values[1]), values };
};

test('the inspector: every part by keys, and its parameters are those of the model', async () => {
  await visit('', {}, async (page) => {
    await settledLesson(page);
    const { model } = await stateOf(page);
    const parts = page.locator('#inspector').getByRole('radio');
    assert.equal(await parts.count(), 9);
    await page.locator('#inspector [aria-checked=true]').focus();
    for (let i = 0; i < 9; i++) await page.keyboard.press('ArrowUp');
    let sum = 0;
    const titles = [];
    for (let i = 0; i < 9; i++) {
      const { title, parameters, values } = await factsOf(page);
      titles.push(title);
      sum += parameters;
      assert.ok(
        values.every((value) => value.length > 0 && !value.includes('NaN')),
        `${values}`,
      );
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-checked')), 'true');
      await page.keyboard.press('ArrowDown');
    }
    assert.equal(new Set(titles).size, 9);
    const outside = model.vocabulary * model.width + model.width;
    assert.equal(model.layers * sum + outside, model.parameters);
    const text = await page.locator('#sum').textContent();
    assert.match(text, new RegExp(`${model.parameters.toLocaleString('en')}, as the model has`));
  });
});

test('the inspector: sliders change costs as the formulas say, and the live sizes come back', async () => {
  await visit('', {}, async (page) => {
    await settledLesson(page);
    const inspector = page.locator('#inspector');
    await inspector.getByRole('slider', { name: 'Length T' }).fill('12');
    await inspector.getByText('[4, 4096, 32] · [4, 32, 4096] → [4, 4096, 4096]').waitFor();
    const { values } = await factsOf(page);
    assert.match(values[2], /^4\.29 G/); // 2 · 4 · 4096² · 32
    assert.match(values[4], /^268 MB as a whole/); // 4 bytes · 4 · 4096²
    await inspector.getByRole('slider', { name: 'Key/value heads' }).fill('2');
    const rows = await cellsOf(page.locator('#cache'));
    assert.deepEqual(
      rows.map(([name]) => name.slice(0, 5)),
      ['MHA 4', 'GQA 2', 'MQA 1'],
    );
    // 2 (keys, values) · 5 layers · heads · 32 · 4096 tokens · 4, 2 and 34/32 bytes
    assert.deepEqual(rows[0].slice(1, 4), ['21 MB', '10.5 MB', '5.57 MB']);
    assert.deepEqual(rows[2].slice(1, 4), ['5.24 MB', '2.62 MB', '1.39 MB']);
    await inspector.getByRole('button', { name: 'Sizes of the live model' }).click();
    await inspector.getByText('[4, 34, 32] · [4, 32, 34] → [4, 34, 34]').waitFor();
  });
});

test('the code runs under the page’s policy and agrees with PyTorch and with plain arithmetic', async () => {
  await visit('', {}, async (page) => {
    const pane = page.locator('#code-pane');
    await pane.getByRole('button', { name: 'Run' }).click();
    await pane.getByText('they agree').waitFor();
    const rows = await cellsOf(pane.locator('#comparison'));
    assert.equal(rows.length, 2);
    for (const [name, difference] of rows) {
      const value = Number(difference.replace('−', '-'));
      assert.ok(value > 0 && value < 2e-6, `${name}: ${difference}`);
    }
    assert.match(await pane.locator('.printed').textContent(), /^output \[1,17,24\] \[ -?\d/);
  });
});

test('changed code gives something else, and says so; errors are shown; Ctrl+Enter runs', async () => {
  await visit('', { tolerated: /error: (Uncaught|Failed)/ }, async (page) => {
    const pane = page.locator('#code-pane');
    const text = pane.getByLabel('attention-wasm');
    const code = await text.inputValue();
    const run = async (changed) => {
      await text.fill(changed);
      await text.press('Control+Enter');
      await pane.getByRole('button', { name: 'Run', exact: true }).waitFor();
    };
    await run(code.replace("  rope: { style: 'interleaved' },\n", ''));
    await pane.getByText('this computes something else').waitFor();
    const [[, difference]] = await cellsOf(pane.locator('#comparison'));
    assert.ok(Number(difference.replace('−', '-')) > 0.01);
    await run(code.replace('dModel: 24', 'dModel: 25'));
    await pane
      .getByText(/numHeads|dModel/)
      .last()
      .waitFor();
    assert.match(await pane.locator('.failure').textContent(), /multiHeadAttention: .*25/);
    await run("import { nothing } from 'elsewhere';\n");
    await pane.getByText(/only attention-wasm and .\/given.js can be imported here, not elsewhere/).waitFor();
    await run('const x = ;');
    await pane.getByText('there is a syntax error in it').waitFor();
    await run("console.log('seven', 7);");
    await pane.getByText('seven 7').waitFor();
    assert.ok(await pane.getByText('exports no tensor').isVisible());
    await pane.getByRole('button', { name: 'As it was' }).click();
    assert.equal(await text.inputValue(), code);
  });
});

const kQuestions = ['cost', 'heaviest', 'mask', 'shift', 'saturation', 'cache'];

test('each question: wrong answers are explained, the right one counts, and the next visit knows', async () => {
  await visit('', {}, async (page) => {
    await settledLesson(page);
    const count = () => page.locator('#questions-done').textContent();
    assert.equal(await count(), '0 of 6 done');
    for (const [i, name] of kQuestions.entries()) {
      const card = page.locator(`#question-${name}`);
      const right = Number(await card.getAttribute('data-right'));
      const options = card.locator('.option');
      assert.ok((await options.count()) >= 3);
      for (let o = 0; o < (await options.count()); o++) {
        if (o === right) continue;
        await options.nth(o).click();
        assert.match(await card.locator('.verdict').textContent(), /^Not so\. .{10}/);
      }
      assert.equal(await count(), `${i} of 6 done`);
      await options.nth(right).press('Enter');
      assert.match(await card.locator('.verdict').textContent(), /^Right\. .{20}/);
      assert.equal(await count(), `${i + 1} of 6 done`);
    }
    await page.reload();
    await page.waitForFunction(() => 'attentionPage' in window);
    await settledLesson(page);
    assert.equal(await count(), '6 of 6 done');
    assert.equal(await page.locator('.done-mark').count(), 6);
    await page.getByRole('button', { name: 'start again' }).click();
    assert.equal(await count(), '0 of 6 done');
    await page.reload();
    await page.waitForFunction(() => 'attentionPage' in window);
    await settledLesson(page);
    assert.equal(await count(), '0 of 6 done');
  });
});

for (const text of ['', 'Mr. Darcy and Miss Bingley walked to Netherfield; Mr. Darcy and Miss']) {
  test(`the question from the reader's sentence is judged by the weights: ${text || 'the first text'}`, async () => {
    await visit(text && `#text=${encodeURIComponent(text)}`, {}, async (page) => {
      const { at } = await settledLesson(page);
      const { ids, tokens } = await stateOf(page);
      await page.locator('#part-intuition').getByText(`L${at[0]}·H${at[1]}`).first().waitFor();
      const { weights } = oracleSteps(ids, at);
      const card = page.locator('#question-heaviest');
      const [, row] = (await card.locator('legend').textContent()).match(/when (\d+) “/).map(Number);
      const best = weights[row].indexOf(Math.max(...weights[row]));
      const right = Number(await card.getAttribute('data-right'));
      assert.equal(await card.locator('.option').nth(right).textContent(), `${best} “${tokens[best]}”`);
      await card.locator('.option').nth(right).click();
      const said = numbersIn((await card.locator('.verdict').textContent()).replace(/“[^”]*”/g, ''));
      assertClose([said[1]], [weights[row][best]], { absolute: 1e-3 });
      await card.getByRole('button', { name: 'show the row in the instrument' }).click();
      assert.equal(await page.evaluate(() => window.attentionPage.state.focus.row), row);
      const seen = page.locator('#question-mask');
      const half = Math.floor(tokens.length / 2);
      const rightCount = await seen
        .locator('.option')
        .nth(Number(await seen.getAttribute('data-right')))
        .textContent();
      assert.equal(Number(rightCount), half + 1);
    });
  });
}

test('the cost is measured from T = 128 to 4096: time grows more than the length, fused memory stays small', async () => {
  await visit('', {}, async (page) => {
    await goTo(page, 'checkpoint');
    const measurement = page.locator('#cost-measurement');
    await measurement.getByRole('button', { name: 'Measure it here' }).click();
    await measurement.getByRole('button', { name: 'Measure again' }).waitFor({ timeout: 120_000 });
    const rows = await cellsOf(measurement.locator('table'));
    assert.deepEqual(
      rows.map(([T]) => Number(T)),
      [128, 256, 512, 1024, 2048, 4096],
    );
    const times = rows.map(([, time]) => numbersIn(time)[0]);
    // 1,024 times the pairs; a linear cost would make it 32. Wide bounds: the machine may be busy.
    assert.ok(times[5] / times[0] > 100, `${times}`);
    assert.match(rows[5][4], /^(6[6-9]|[78]\d)(\.\d)? MB$/); // 4096² · 4 bytes are 67 MB
    assert.match(rows[5][3], /^([1-6])(\.\d+)? MB$/); // inputs and output are 4 MB, of which 2 were there
    const plots = measurement.locator('.plot svg');
    assert.equal(await plots.count(), 2);
    assert.equal(await plots.first().locator('circle').count(), 6);
  });
});
