// The model writes on: token by token with its cache, each with its row of attention.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClose } from '../support/tensors.js';
import { matrixOf, shippedOracle } from './shipped-oracle.js';
import { stateOf, useBrowser } from './support.js';

const visit = useBrowser();
const open = (page) => page.locator('#writing summary').click();

/** Looks at every step of the writing that follows: tokens, rows and columns of the matrix, and the readout. */
const record = (page) =>
  page.evaluate(() => {
    window.steps = [];
    const readout = document.getElementById('written');
    new MutationObserver(() => {
      const { run, matrix } = window.attentionPage;
      window.steps.push({
        tokens: run.tokens.length,
        from: matrix.from,
        columns: matrix.columns,
        text: readout.textContent,
      });
    }).observe(readout, { childList: true, characterData: true, subtree: true });
  });

test('without a temperature: the likeliest tokens, streamed, with fewer rows than columns', async () => {
  await visit('#text=blue+seven+window+candle.+blue+seven&write=6,0,0,1,1,0', {}, async (page) => {
    const { ids: prompt } = await stateOf(page);
    await open(page);
    await record(page);
    await page.getByRole('button', { name: 'Write 6 tokens' }).click();
    await page.waitForFunction(() => window.attentionPage.state.added.length === 6);
    const state = await stateOf(page);
    const written = [];
    for (let i = 0; i < 6; i++) {
      const last = shippedOracle([...prompt, ...written]).logits.at(-1);
      written.push(last.indexOf(Math.max(...last)));
    }
    assert.deepEqual(state.state.added, written);
    assert.deepEqual([state.ids, state.prompt], [[...prompt, ...written], prompt.length]);
    const steps = await page.evaluate(() => window.steps);
    assert.ok(steps.length >= 6, `${steps.length} steps were shown`);
    assert.ok(steps.slice(1).every(({ tokens }, i) => tokens >= steps[i].tokens));
    const T = prompt.length + 6;
    const shown = await matrixOf(page);
    assert.deepEqual([shown.from, shown.columns, shown.rows.length], [prompt.length, T, 6]);
    const head = shippedOracle(state.ids).attention[4][2];
    shown.rows.forEach((row, i) => {
      const r = prompt.length + i;
      assertClose(row.slice(0, r + 1), head[r].slice(0, r + 1), { absolute: 1e-4 });
      assert.ok(row.slice(r + 1).every((value) => value === null));
    });
    assert.match(
      await page.locator('#readout').textContent(),
      new RegExp(`· ${T - 1} “${state.tokens[T - 1]}” asks \\d+ “`),
    );
    assert.equal(await page.locator('#tokens .written').count(), 6);
    assert.ok(await page.getByRole('application', { name: `6 by ${T} tokens` }).isVisible());
    assert.match(await page.locator('#token-count').textContent(), /The model has written 6 more\./);
    await page.waitForURL(new RegExp(`added=${written.join('\\.')}.*&new=1`));
    await page.getByLabel('New rows only').click();
    assert.equal((await matrixOf(page)).rows.length, T);
    await page.getByRole('button', { name: 'Take it back' }).click();
    assert.deepEqual((await stateOf(page)).ids, prompt);
  });
});

test('the rows as they come from the cache, against the float64 forward', async () => {
  await visit('#text=Mr.+Darcy+and+Miss&write=5,0,0,1,1,0', {}, async (page) => {
    // The matrix of each step, before the model reads the whole text once more at the end.
    const steps = await page.evaluate(async () => {
      const session = window.attentionPage;
      await session.settled();
      const seen = [];
      const look = setInterval(() => {
        const { run, matrix } = session;
        if (seen.at(-1)?.ids.length === run.ids.length || run.ids.length === run.prompt) return;
        seen.push({ ids: run.ids, from: matrix.from, columns: matrix.columns, data: Array.from(matrix.data) });
      });
      await session.write();
      await session.settled();
      clearInterval(look);
      return seen.map((each) => ({ ...each, data: each.data.map((value) => (Number.isNaN(value) ? 0 : value)) }));
    });
    assert.ok(steps.length >= 3, `${steps.length} steps were seen`);
    for (const { ids, from, columns, data } of steps) {
      assert.deepEqual([columns, data.length], [ids.length, (ids.length - from) * ids.length]);
      const head = shippedOracle(ids).attention[4][2];
      assertClose(data, head.slice(from).flat(), { absolute: 1e-4 });
    }
  });
});

test('with a seed: the same text at each visit, another one with another seed; reloaded from the address', async () => {
  await visit('#text=Elizabeth+was&write=12,0.9,50,0.95,7,0', {}, async (page) => {
    await open(page);
    const write = async () => {
      await page.getByRole('button', { name: 'Write 12 tokens' }).click();
      await page.waitForFunction(() => window.attentionPage.state.added.length === 12);
      return (await stateOf(page)).state.added;
    };
    const first = await write();
    await page.waitForURL(/added=/);
    await page.reload();
    await page.waitForFunction(() => 'attentionPage' in window);
    const reloaded = await stateOf(page);
    assert.deepEqual(reloaded.ids.slice(reloaded.prompt), first);
    await open(page);
    await page.getByRole('button', { name: 'Take it back' }).click();
    assert.deepEqual(await write(), first);
    await page.getByRole('button', { name: 'Take it back' }).click();
    const seed = page.locator('#writing').getByLabel('Seed');
    await seed.fill('8');
    await seed.blur();
    assert.notDeepEqual(await write(), first);
  });
});

test('stops at the end of a sentence, by the button, and when the text is changed', async () => {
  await visit('#text=Elizabeth+was&write=200,0,0,1,1,1', {}, async (page) => {
    await open(page);
    await page.getByRole('button', { name: 'Write 200 tokens' }).click();
    await page.waitForFunction(() => window.attentionPage.state.added.length > 0);
    const { tokens, prompt } = await stateOf(page);
    assert.match(tokens.at(-1), /[.!?]/);
    assert.ok(tokens.slice(prompt, -1).every((token) => !/[.!?]/.test(token)));
    await page.getByRole('button', { name: 'Take it back' }).click();
    await page.getByLabel('Stop at the end of a sentence').click();
    await page.getByRole('button', { name: 'Write 200 tokens' }).click();
    await page.waitForFunction(() => document.getElementById('written').textContent.length > 3);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.waitForFunction(() => window.attentionPage.state.added.length > 0);
    const stopped = (await stateOf(page)).state.added.length;
    assert.ok(stopped < 200, `${stopped} tokens`);
    await page.getByRole('button', { name: 'Write 200 tokens' }).click();
    await page.waitForFunction((count) => window.attentionPage.run.tokens.length > count, prompt + stopped + 1);
    await page.getByLabel('Your text').fill('Another text');
    const other = await stateOf(page);
    assert.deepEqual([other.state.added, other.tokens.length], [[], other.prompt]);
    assert.match(other.tokens.join(''), /·text$/);
  });
});

test('without the causal mask nothing can be written, and the page says why', async () => {
  await visit('#mask=0', {}, async (page) => {
    await open(page);
    assert.equal(await page.getByRole('button', { name: 'Write 24 tokens' }).isDisabled(), true);
    assert.ok(await page.getByText(/Without the causal mask no text can be written/).isVisible());
  });
});
