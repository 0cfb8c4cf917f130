// The grid of heads, their labels, and what is left of the model without some of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shipped } from '../support/shipped-model.js';
import { assertClose } from '../support/tensors.js';
import { measuresOf, stateOf, useBrowser, weightAt } from './support.js';

const visit = useBrowser();
const kInduction = ['L4·H0', 'L4·H2', 'L4·H3'];
const kPrevious = ['L2·H2', 'L2·H3', 'L3·H3'];

const labels = (page) =>
  page
    .locator('.thumbnail')
    .evaluateAll((nodes) => nodes.map((node) => [...node.children].slice(1).map((each) => each.textContent)));

test('a thumbnail for each head, with the labels of the card, and the scores behind them', async () => {
  await visit('', {}, async (page) => {
    const { scores } = await measuresOf(page);
    const { scores: card } = shipped.heads;
    assertClose(scores.previous.flat(), card.previous_random.flat(), { absolute: 0.03 });
    assertClose(scores.induction.flat(), card.induction_random.flat(), { absolute: 0.05 });
    assertClose(scores.itself.flat(), card.self.flat(), { absolute: 0.05 });
    assertClose(scores.first.flat(), card.first.flat(), { absolute: 0.12 });
    const shown = await labels(page);
    assert.deepEqual(
      shown.map(([name]) => name),
      Array.from({ length: 20 }, (_, i) => `L${Math.floor(i / 4)}·H${i % 4}`),
    );
    const named = (role) => shown.filter((each) => each[1] === role).map(([name]) => name);
    assert.deepEqual(named('induction'), kInduction);
    assert.deepEqual(named('previous token'), kPrevious);
    assert.deepEqual(named('itself'), ['L0·H2', 'L0·H3']);
    assert.equal(named('no clear role').length, 12);
    assert.match(await page.locator('#head-scores').textContent(), /induction 0\.9\d/);
    assert.ok(await page.getByText(/induction heads of this model come from drills/).isVisible());
  });
});

const viewed = (page) =>
  page.evaluate(async () => {
    const session = window.attentionPage;
    await session.settled();
    return { at: session.state.at, peek: session.state.peek, row: Array.from(session.matrix.data.slice(-34)) };
  });

/** The last row of a head, as the stored example or the kernels have it. */
const rowOf = (state, head) => state.tokens.map((_, column) => weightAt(state, head, 33, column));

test('a click chooses a head: matrix, title, readout and table follow', async () => {
  await visit('', {}, async (page) => {
    const state = await stateOf(page);
    await page.getByRole('radio', { name: /^L3·H3/ }).click();
    const { at, row } = await viewed(page);
    assert.deepEqual([at, row], [[3, 3], rowOf(state, [3, 3])]);
    const chosen = page.locator('.thumbnail[aria-checked=true]');
    assert.match(await chosen.textContent(), /^L3·H3/);
    assert.match(await page.locator('#head-title').textContent(), /^L3·H3 · previous token$/);
    const value = weightAt(state, [3, 3], 33, 16).toFixed(3);
    assert.equal(await page.locator('#readout').textContent(), `L3·H3 · 33 “ver” asks 16 “·st”: ${value}`);
    assert.match(await page.locator('#row-panel caption').textContent(), /^L3·H3 /);
    assert.ok(await page.getByRole('application', { name: /head L3·H3,/ }).isVisible());
  });
});

test('the pointer over a thumbnail shows its head in every view, a click keeps it, leaving goes back', async () => {
  await visit('', {}, async (page) => {
    const state = await stateOf(page);
    const address = page.url();
    const arcs = () => page.locator('.arcs title').first().textContent();
    const before = await arcs();
    await page.getByRole('radio', { name: /^L2·H3/ }).hover();
    const over = await viewed(page);
    assert.deepEqual([over.at, over.peek, over.row], [[4, 2], [2, 3], rowOf(state, [2, 3])]);
    assert.match(await page.locator('#head-title').textContent(), /^L2·H3 · previous token.*preview$/);
    assert.match(await page.locator('#row-panel caption').textContent(), /^L2·H3 · row 33/);
    assert.match(await page.locator('#readout').textContent(), /^L2·H3 · 33/);
    assert.match(await arcs(), new RegExp(`^${Math.max(...rowOf(state, [2, 3])).toFixed(3)}: 33`));
    assert.match(await page.locator('.thumbnail[aria-checked=true]').textContent(), /^L4·H2/, 'nothing is chosen yet');
    await page.locator('#head-title').hover();
    const left = await viewed(page);
    assert.deepEqual([left.at, left.peek, left.row], [[4, 2], null, rowOf(state, [4, 2])]);
    assert.equal(await arcs(), before);
    await page.waitForTimeout(400); // longer than the address waits
    assert.equal(page.url(), address);
    await page.getByRole('radio', { name: /^L2·H3/ }).click();
    await page.locator('#head-title').hover();
    const kept = await viewed(page);
    assert.deepEqual([kept.at, kept.peek, kept.row], [[2, 3], null, rowOf(state, [2, 3])]);
    await page.waitForURL(/head=2\.3/);
    await page.getByRole('radio', { name: /^L1·H1/ }).hover();
    assert.deepEqual((await viewed(page)).peek, [1, 1]);
    await page.keyboard.press('Escape');
    assert.deepEqual((await viewed(page)).row, rowOf(state, [2, 3]));
  });
});

test('the arrow keys show a head in passing, Enter keeps it, Escape and Tab go back', async () => {
  await visit('', {}, async (page) => {
    const state = await stateOf(page);
    const focused = () => page.evaluate(() => document.activeElement.textContent);
    await page.getByRole('radio', { name: /^L4·H2/ }).focus();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight'); // no further head there
    const over = await viewed(page);
    assert.deepEqual([over.at, over.peek, over.row], [[4, 2], [3, 3], rowOf(state, [3, 3])]);
    assert.match(await focused(), /^L3·H3/);
    assert.equal(await page.locator('.thumbnail[tabindex="0"]').count(), 1, 'the heads stay one stop');
    await page.keyboard.press('Escape');
    const back = await viewed(page);
    assert.deepEqual([back.at, back.peek, back.row], [[4, 2], null, rowOf(state, [4, 2])]);
    assert.match(await focused(), /^L4·H2/);
    await page.keyboard.press('ArrowLeft');
    assert.deepEqual((await viewed(page)).peek, [4, 1]);
    await page.keyboard.press('Tab');
    assert.deepEqual((await viewed(page)).row, rowOf(state, [4, 2]));
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('Enter');
    const kept = await viewed(page);
    assert.deepEqual([kept.at, kept.peek, kept.row], [[4, 1], null, rowOf(state, [4, 1])]);
    assert.ok(!page.url().includes('3.3'));
    await page.waitForURL(/head=4\.1/);
  });
});

test('with several heads as one the pointer shows each of them alone, a click adds it', async () => {
  await visit('#view=mean&of=2.2,3.3', {}, async (page) => {
    const state = await stateOf(page);
    const mean = (...heads) =>
      rowOf(state, heads[0]).map((_, c) => heads.reduce((sum, head) => sum + rowOf(state, head)[c], 0) / heads.length);
    const thumbnail = page.getByRole('checkbox', { name: 'L4·H2 induction' });
    await thumbnail.hover();
    assert.deepEqual((await viewed(page)).row, rowOf(state, [4, 2]));
    await thumbnail.click();
    assertClose((await viewed(page)).row, mean([2, 2], [3, 3], [4, 2]), { absolute: 1e-6 });
  });
});

test('before the model is here a thumbnail shows the stored weights of its head', async () => {
  const held = async (page) => {
    await page.route('**/*.safetensors', () => {}); // never answered
  };
  await visit('', { arrange: held, wait: false }, async (page) => {
    await page.getByText('A stored example').waitFor();
    await page.getByRole('radio', { name: /^L2·H3/ }).hover();
    assert.match(await page.locator('#head-title').textContent(), /^L2·H3/);
    assert.match(await page.locator('#row-panel caption').textContent(), /^L2·H3 · row 33/);
    const previous = page.locator('#row-panel tbody tr').nth(32).locator('td').last();
    assert.ok(Number(await previous.textContent()) > 0.5, 'a previous-token head');
  });
});

test('a quick way over all thumbnails ends at the last: late answers are dropped', async () => {
  await visit('', {}, async (page) => {
    const state = await stateOf(page);
    await page.evaluate(() => {
      for (const node of document.querySelectorAll('.thumbnail')) {
        node.dispatchEvent(new PointerEvent('pointerover', { bubbles: true, pointerType: 'mouse' }));
      }
    });
    const { peek, row } = await viewed(page);
    assert.deepEqual([peek, row], [[4, 3], rowOf(state, [4, 3])]);
    assert.match(await page.locator('#head-title').textContent(), /^L4·H3/);
  });
});

async function effectsShown(page) {
  const { effects } = await measuresOf(page);
  const cell = (id) => page.locator(`#${id}`).textContent();
  const shown = {
    copying: [await cell('copying-before'), await cell('copying-after')],
    loss: [await cell('loss-before'), await cell('loss-after')],
  };
  return { effects, shown };
}

test('all induction heads off: copying is gone, the loss hardly rises, another token comes next', async () => {
  await visit('', {}, async (page) => {
    await measuresOf(page);
    const before = await stateOf(page);
    await page.getByRole('button', { name: 'All 3 induction heads off' }).click();
    const { effects, shown } = await effectsShown(page);
    const [whole, without] = [effects['[]'], effects['[[4,0],[4,2],[4,3]]']];
    assert.ok(whole.copied > 500);
    assertClose([whole.copying, without.copying], [0.997, 0.0006], { absolute: 0.012 });
    assertClose([without.loss - whole.loss], [0.01], { absolute: 0.05 });
    const percent = (share) => `${(100 * share).toFixed(share > 0.9995 ? 0 : 1)} %`;
    assert.deepEqual(shown.copying, [percent(whole.copying), percent(without.copying)]);
    assert.deepEqual(shown.loss, [whole.loss.toFixed(3), without.loss.toFixed(3)]);
    const { candidates } = await stateOf(page);
    const expected = candidates.find(({ token }) => token === '·st');
    assertClose([expected.before], [before.candidates[0].after], { absolute: 1e-6 });
    assert.ok(expected.after < 0.02);
    assert.equal(await page.locator('#next tbody tr').first().locator('.bar').count(), 2);
    assert.deepEqual(
      (await labels(page)).filter((each) => each[1] === 'off').map(([name]) => name),
      kInduction,
    );
    assert.match(await page.locator('#off-list').textContent(), /^Off: L4·H0, L4·H2, L4·H3\.$/);
    await page.getByRole('button', { name: 'All on' }).click();
    assert.deepEqual((await stateOf(page)).candidates, before.candidates);
    assert.equal(await page.locator('#copying-after').textContent(), '–');
  });
});

test('all previous-token heads off: copying and the loss suffer', async () => {
  await visit('', {}, async (page) => {
    await measuresOf(page);
    const group = page.getByRole('button', { name: 'All 3 previous-token heads off' });
    await group.click();
    const { effects } = await effectsShown(page);
    const [whole, without] = [effects['[]'], effects['[[2,2],[2,3],[3,3]]']];
    assertClose([without.copying], [0.041], { absolute: 0.04 });
    assertClose([without.loss - whole.loss], [0.556], { absolute: 0.2 });
    assert.equal(await group.getAttribute('aria-pressed'), 'true');
    await group.click();
    assert.deepEqual((await stateOf(page)).state.off, []);
  });
});

test('one head off and on, by its switch', async () => {
  await visit('', {}, async (page) => {
    const before = await stateOf(page);
    await page.getByLabel('L4·H2 on').click();
    const off = await stateOf(page);
    assert.deepEqual(off.state.off, [[4, 2]]);
    assert.match(await page.locator('#head-title').textContent(), /· off$/);
    assert.deepEqual(off.weights, before.weights, 'the last layer: nothing below it has changed');
    assert.notDeepEqual(off.candidates, before.candidates);
    await page.getByLabel('L4·H2 on').click();
    assert.deepEqual((await stateOf(page)).candidates, before.candidates);
  });
});

test('the text once more behind itself, by one click: the induction head copies, and the page says how much', async () => {
  await visit('#text=blue+seven+window+candle+river+stone.&head=1.1', {}, async (page) => {
    const { scores } = await measuresOf(page);
    const best = Math.max(...scores.induction.flat());
    const at = [4, scores.induction[4].indexOf(best)];
    await page.getByRole('button', { name: 'Your text twice' }).click();
    const state = await stateOf(page);
    assert.equal(state.state.text, 'blue seven window candle river stone. blue seven window candle river stone.');
    assert.deepEqual(state.state.at, at, 'the head with the highest score');
    const weights = state.tokens.flatMap((token, row) => {
      const before = state.tokens.lastIndexOf(token, row - 1);
      return row > 0 && before >= 0 && before + 1 < row ? [weightAt(state, at, row, before + 1)] : [];
    });
    const mean = weights.reduce((sum, weight) => sum + weight, 0) / weights.length;
    assert.ok(mean > 0.4, `${mean} over ${weights.length} rows`);
    const said = `On this text ${weights.length} tokens come again; from there L4·H${at[1]} gives ${mean.toFixed(2)} `;
    assert.ok((await page.locator('#head-here').textContent()).startsWith(said));
  });
});
