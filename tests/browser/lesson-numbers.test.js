// The numbers of the lesson's first three sections are those of the formulas, in float64.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { normals } from '../../web/src/engine/random.js';
import { configs } from '../support/models.js';
import { transformer } from '../support/oracle-transformer.js';
import { assertClose } from '../support/tensors.js';
import { cellsOf, goTo, numberOf, numbersIn, oracleSteps, restOf, settledLesson } from './lesson-support.js';
import { folderOf, vocabulary } from './own-files.js';
import { stateOf, useBrowser } from './support.js';

const visit = useBrowser();
const kShown = { absolute: 1.5e-3 }; // three decimals of float32 results

test('the keys that a token asks, with scores and weights; another token asks others', async () => {
  await visit('', {}, async (page) => {
    await settledLesson(page);
    const { ids, tokens } = await stateOf(page);
    const want = oracleSteps(ids, [4, 2]);
    const figure = page.locator('#answers');
    for (const row of [33, 25]) {
      await figure.getByLabel('Token that asks').selectOption(String(row));
      await restOf(page);
      const cells = await cellsOf(figure.locator('table'));
      const best = [...want.weights[row].keys()]
        .sort((a, b) => want.weights[row][b] - want.weights[row][a])
        .slice(0, 5);
      assert.deepEqual(
        cells.map(([name]) => name),
        best.map((key) => `${key} “${tokens[key]}”`),
      );
      assertClose(
        cells.map((line) => numberOf(line[1])),
        best.map((key) => want.scores[row][key]),
        kShown,
      );
      assertClose(
        cells.map((line) => numberOf(line[3])),
        best.map((key) => want.weights[row][key]),
        kShown,
      );
    }
  });
});

/** Spread, entropy, largest weight and Σ w (1 − w) of random rows. */
function sharpnessOf(d, scale) {
  const n = 64;
  const [q, k] = [normals(1000 + d, n * d, 1), normals(2000 + d, n * d, 1)];
  const sums = { squares: 0, entropy: 0, largest: 0, slope: 0 };
  for (let i = 0; i < n; i++) {
    const scores = Array.from({ length: n }, (_, j) => {
      let sum = 0;
      for (let c = 0; c < d; c++) sum += q[i * d + c] * k[j * d + c];
      return sum * scale;
    });
    const most = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - most));
    const total = powers.reduce((a, b) => a + b);
    const weights = powers.map((power) => power / total);
    sums.squares += scores.reduce((sum, score) => sum + score * score, 0);
    sums.entropy -= weights.reduce((sum, w) => sum + (w > 0 ? w * Math.log(w) : 0), 0);
    sums.largest += Math.max(...weights);
    sums.slope += weights.reduce((sum, w) => sum + w * (1 - w), 0);
  }
  return [Math.sqrt(sums.squares / (n * n)), sums.entropy / n, sums.largest / n, sums.slope / n];
}

test('the factor √d: the slider shows what the kernel gives with and without it', async () => {
  await visit('', {}, async (page) => {
    const figure = page.locator('#scale-experiment');
    const slider = figure.getByRole('slider');
    for (const [key, d] of [
      ['End', 512],
      ['Home', 2],
      ['ArrowRight', 4],
    ]) {
      await slider.press(key);
      await figure.locator('output', { hasText: new RegExp(`^${d}$`) }).waitFor();
      const cells = await cellsOf(figure.locator('table'));
      assertClose(
        cells.map((line) => numberOf(line[1])),
        sharpnessOf(d, 1 / Math.sqrt(d)),
        { absolute: 6e-3 },
      );
      assertClose(
        cells.map((line) => numberOf(line[2])),
        sharpnessOf(d, 1),
        { absolute: 6e-3, relative: 1e-3 },
      );
    }
    assert.ok(sharpnessOf(512, 1)[1] < 0.3, 'without the factor wide vectors saturate');
  });
});

test('every symbol lights its tensor, by pointer and by key, and its numbers are those of the row in focus', async () => {
  await visit('', {}, async (page) => {
    await goTo(page, 'formulas');
    const { at } = await settledLesson(page);
    assert.deepEqual(at, [2, 3], 'the view of this section');
    const { ids } = await stateOf(page);
    const want = oracleSteps(ids, at);
    const figure = page.locator('#symbols');
    const rows = {
      Q: want.turned.q[33],
      K: want.turned.k[16],
      softmax: want.weights[33],
      V: want.v[16],
      Attention: want.mixed[33],
    };
    for (const [sign, row] of Object.entries(rows)) {
      await figure.getByRole('button', { name: new RegExp(`^${sign}( |$)`) }).focus();
      const note = await figure.locator('.two-lines').textContent();
      assert.ok(note.startsWith(`${sign} [34, `), note);
      const numbers = numbersIn(note.slice(note.indexOf('): ') + 3)).slice(0, 4);
      assertClose(numbers, row.slice(0, 4), { absolute: 0.0055 });
      assert.equal(await figure.locator('.tensor.lit').count(), 1);
      assert.ok((await figure.locator('.tensor.lit figcaption').textContent()).startsWith(`${sign} `));
    }
    await figure.locator('.set-formula [data-symbol=m]').hover();
    assert.match(await figure.locator('.two-lines').textContent(), /^M \[34, 34\].*−∞ above the diagonal/);
    assert.equal(await figure.locator('[data-symbol].lit').getAttribute('data-symbol'), 'm');
  });
});

test('RoPE: shifting both positions leaves the score, moving one changes it as the formula says', async () => {
  await visit('', {}, async (page) => {
    await goTo(page, 'formulas');
    const { at } = await settledLesson(page);
    const { ids } = await stateOf(page);
    const want = oracleSteps(ids, at);
    const score = (m, n) => {
      const [q, k] = [want.turn(want.q[33], m), want.turn(want.k[16], n)];
      return q.reduce((sum, value, c) => sum + value * k[c], 0) / Math.sqrt(want.D);
    };
    const figure = page.locator('#rope');
    const shown = async () => numberOf(await figure.locator('#rope-score').textContent());
    const set = (name, value) => figure.getByRole('slider', { name }).fill(String(value));
    assertClose([await shown()], [score(33, 16)], { absolute: 2e-4 });
    await set('Shift both by', 150);
    await figure.getByText('Query at 183, key at 166, distance 17').waitFor();
    assertClose([await shown()], [score(33, 16)], { absolute: 2e-4 });
    await set('Move the key alone by', 9);
    await figure.getByText('key at 175, distance 8').waitFor();
    assertClose([await shown()], [score(33, 25)], { absolute: 2e-4 });
    assert.ok(Math.abs(score(33, 25) - score(33, 16)) > 1);
    const path = await figure.locator('.plot .series path').getAttribute('d');
    const points = path.match(/[\d.]+,[\d.]+/g).map((pair) => pair.split(',').map(Number));
    assert.equal(points.length, 97);
    const height = (far) => points[far][1];
    const [a, b, c] = [0, 17, 40];
    const wantRatio = (score(96, 96 - b) - score(96, 96)) / (score(96, 96 - c) - score(96, 96));
    assertClose([(height(b) - height(a)) / (height(c) - height(a))], [wantRatio], { absolute: 0.02, relative: 0.02 });
  });
});

/** Where the hands of the first pair point, in turns, and how long they take to get there. @param {import('playwright-core').Locator} figure */
const handsOf = (figure) =>
  figure
    .locator('.clock')
    .first()
    .evaluate(async (clock) => {
      const hands = ['q', 'k'].map((kind) => clock.querySelector(`.hand.${kind}`));
      const moves = hands.flatMap((hand) => hand.getAnimations());
      const times = moves.map(({ effect }) => effect.getTiming().duration);
      await Promise.all(moves.map(({ finished }) => finished));
      return {
        times,
        turns: hands.map((hand) => {
          const { a, b } = new DOMMatrix(getComputedStyle(hand).transform);
          return Math.atan2(-b, a) / (2 * Math.PI);
        }),
      };
    });

for (const reducedMotion of ['no-preference', 'reduce']) {
  test(`the hands of a pair point where RoPE turns query and key, ${reducedMotion === 'reduce' ? 'at once' : 'and are seen to turn'}`, async () => {
    await visit('', { reducedMotion }, async (page) => {
      await goTo(page, 'formulas');
      await settledLesson(page);
      const want = oracleSteps((await stateOf(page)).ids, [2, 3]);
      const figure = page.locator('#rope');
      for (const shift of [0, 1, 3]) {
        await figure.getByRole('slider', { name: 'Shift both by' }).fill(String(shift));
        await figure.getByText(`Query at ${33 + shift}, key at ${16 + shift}, distance 17`).waitFor();
        const { times, turns } = await handsOf(figure);
        const half = want.D / 2;
        const pairs = [want.turn(want.q[33], 33 + shift), want.turn(want.k[16], 16 + shift)];
        for (const [i, vector] of pairs.entries()) {
          const off = turns[i] - Math.atan2(vector[half], vector[0]) / (2 * Math.PI);
          assert.ok(Math.abs(off - Math.round(off)) < 1e-3, `hand ${i} is off by ${off} turns`);
        }
        if (shift === 0) continue;
        assert.deepEqual(new Set(times), new Set(reducedMotion === 'reduce' ? [] : [160]), `shift ${shift}`);
      }
    });
  });
}

test('the mechanism, step by step and by keys: every list and line is the arithmetic of the oracle', async () => {
  await visit('', {}, async (page) => {
    await goTo(page, 'mechanism');
    await settledLesson(page);
    const { ids } = await stateOf(page);
    const want = oracleSteps(ids, [4, 2]);
    const stepper = page.locator('#stepper');
    const channel = 5;
    const [row, column] = [33, 16];
    const foot = async () => numbersIn(await stepper.locator('tfoot').textContent()).at(-1);
    const arithmetic = () => stepper.locator('.arithmetic').textContent();
    const isAt = (n) => stepper.locator('h3', { hasText: `${n} of 11` }).waitFor();
    const choose = () => stepper.getByLabel('Channel').selectOption(String(channel));
    const dot = want.turned.q[row].reduce((sum, value, c) => sum + value * want.turned.k[column][c], 0);

    await choose();
    assertClose([numbersIn(await arithmetic())[2]], [want.x[row][channel]], kShown);
    await stepper.getByRole('button', { name: 'Next →' }).focus();
    await page.keyboard.press('ArrowRight');
    await isAt(2);
    await choose();
    assertClose([await foot()], [want.q[row][channel]], kShown);
    for (const [name, value] of [
      ['key', want.k[column][channel]],
      ['value', want.v[column][channel]],
    ]) {
      assertClose([numberOf(await stepper.locator(`#${name}-in-focus`).textContent())], [value], kShown);
    }
    await stepper.locator('h3').click();
    await stepper.getByRole('button', { name: 'Next →' }).click();
    await isAt(3);
    const rope = numbersIn((await arithmetic()).replace(/^.*x₁′/, ''));
    assertClose([rope[4], rope.at(-1)], [want.turned.q[row][channel], want.turned.q[row][channel + 16]], kShown);
    await stepper.getByRole('button', { name: 'Next →' }).press('ArrowRight');
    await isAt(4);
    assertClose([await foot()], [dot], { absolute: 1e-2 });
    const products = (await cellsOf(stepper.locator('.terms table'))).map((line) => numberOf(line[3]));
    assertClose(
      products,
      want.turned.q[row].map((value, c) => value * want.turned.k[column][c]),
      { absolute: 2e-3 },
    );
    await page.keyboard.press('ArrowRight');
    await isAt(5);
    assertClose([numberOf(await stepper.locator('#score-in-focus').textContent())], [want.scores[row][column]], kShown);
    await page.keyboard.press('ArrowRight');
    await isAt(6);
    assert.match(await arithmetic(), /Row 33 sees the keys 0 to 33: 34 of 34/);
    await page.keyboard.press('ArrowRight');
    await isAt(7);
    const most = Math.max(...want.scores[row].slice(0, row + 1));
    assertClose([numbersIn(await arithmetic())[3]], [Math.exp(want.scores[row][column] - most)], kShown);
    await page.keyboard.press('ArrowRight');
    await isAt(8);
    assertClose(
      [numberOf(await stepper.locator('#weight-in-focus').textContent())],
      [want.weights[row][column]],
      kShown,
    );
    const listed = (await cellsOf(stepper.locator('.terms table'))).map((line) => numberOf(line[4]));
    assertClose(listed, want.weights[row], kShown);
    for (const [n, value] of [
      [9, want.mixed[row][channel]],
      [10, want.joined[row][channel]],
      [11, want.output[row][channel]],
    ]) {
      await stepper.getByRole('button', { name: '← Back' }).press('ArrowRight');
      await isAt(n);
      await choose();
      const got = n === 10 ? numbersIn((await arithmetic()).replace(/^.*here /, ''))[0] : await foot();
      assertClose([got], [value], kShown);
    }
    assert.ok(await stepper.getByRole('button', { name: 'Next →' }).isDisabled());
    await page.keyboard.press('ArrowLeft');
    await isAt(10);
  });
});

test('a cell that is chosen in a picture is the one in focus everywhere', async () => {
  await visit('', {}, async (page) => {
    await goTo(page, 'mechanism');
    await settledLesson(page);
    const stepper = page.locator('#stepper');
    await stepper.getByRole('button', { name: 'Step 4' }).click();
    const map = stepper.getByRole('img', { name: /34 by 34/ });
    const { width, height } = await map.boundingBox();
    await map.click({ position: { x: (8.5 / 34) * width, y: (25.5 / 34) * height } });
    assert.deepEqual(await page.evaluate(() => window.attentionPage.state.focus), { row: 25, column: 8 });
    assert.match(await stepper.locator('tfoot').textContent(), /25 “en” asks 8 “·w”/);
    assert.match(await page.locator('#readout').textContent(), /25 “en” asks 8 “·w”/);
  });
});

test('the layer that isn’t trained goes the same way, without mask and positions', async () => {
  await visit('#model=untrained&heads=2', {}, async (page) => {
    const { layer, weights, tokens, state } = await stateOf(page);
    const stepper = page.locator('#stepper');
    await stepper.getByText(`T = ${tokens.length}, d = 64, 2 heads of 32 on 2`).waitFor();
    await stepper.getByRole('button', { name: 'Step 6' }).click();
    assert.match(await stepper.locator('.arithmetic').textContent(), /without a mask/);
    await stepper.getByRole('button', { name: 'Step 8' }).click();
    const listed = (await cellsOf(stepper.locator('.terms table'))).map((line) => numberOf(line[4]));
    const T = tokens.length;
    assertClose(listed, weights.slice(((state.at[1] + 1) * T - 1) * T, (state.at[1] + 1) * T * T), kShown);
    await stepper.getByRole('button', { name: 'Step 11' }).click();
    await stepper.getByLabel('Channel').selectOption('7');
    const got = numbersIn(await stepper.locator('tfoot').textContent()).at(-1);
    assertClose([got], [layer.output.data[(T - 1) * 64 + 7]], kShown);
  });
});

test('a model of the reader’s own: weights step by step; what its files would be needed for is left out, and said', async () => {
  const config = { ...configs['GPT-2'], ...vocabulary };
  const { weights, files } = folderOf(config);
  await visit('', {}, async (page) => {
    await goTo(page, 'mechanism');
    await page.locator('#own-files').setInputFiles(files);
    await page.waitForFunction(() => window.attentionPage.state.model === 'own');
    const { ids, tokens, state } = await stateOf(page);
    const [layer, head] = state.at;
    const want = transformer(config, weights, ids);
    const stepper = page.locator('#stepper');
    await stepper.getByText(`Head L${layer}·H${head}: T = ${tokens.length}, d = ${config.n_embd}`).waitFor();
    assert.match(await stepper.locator('.arithmetic').textContent(), /parameters of your own model aren’t kept/);
    await stepper.getByRole('button', { name: 'Step 3' }).click();
    assert.match(await stepper.locator('.arithmetic').textContent(), /turns nothing/);
    await stepper.getByRole('button', { name: 'Step 8' }).click();
    const listed = (await cellsOf(stepper.locator('.terms table'))).map((line) => numberOf(line[4]));
    assertClose(listed, want.attention[layer][head][tokens.length - 1], kShown);
    assert.match(await page.locator('#rope figcaption').textContent(), /this model has no RoPE/);
  });
});

test('what is changed of the attention is what the lesson shows', async () => {
  await visit('#temp=2&mask=0', {}, async (page) => {
    await settledLesson(page);
    const { weights, tokens, state } = await stateOf(page);
    const T = tokens.length;
    const stepper = page.locator('#stepper');
    await stepper.getByRole('button', { name: 'Step 8' }).click();
    await stepper.getByLabel('Token that asks').selectOption('10');
    await restOf(page);
    const listed = (await cellsOf(stepper.locator('.terms table'))).map((line) => numberOf(line[4]));
    const first = ((state.at[0] * 4 + state.at[1]) * T + 10) * T;
    assertClose(listed, weights.slice(first, first + T), kShown);
    assert.ok(listed[20] > 0, 'a later token is seen');
  });
});
