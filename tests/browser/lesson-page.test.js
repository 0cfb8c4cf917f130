// The lesson and the instrument together: reading moves it, the reader takes over and goes back; and the page's manners.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goTo, settledLesson } from './lesson-support.js';
import { stateOf, unfold, useBrowser } from './support.js';

const visit = useBrowser();
const kSections = ['intuition', 'formulas', 'mechanism', 'architecture', 'code', 'checkpoint', 'finish'];
const phone = { viewport: { width: 390, height: 844 } };

const headAt = (page) => page.evaluate(() => window.attentionPage.state.at);
const seenCount = (page) => page.locator('.lesson-progress button.seen').count();

test('seven sections in order, with titles, and a line that says how far the reader is', async () => {
  await visit('', {}, async (page) => {
    await settledLesson(page);
    const names = await page
      .locator('[data-section]')
      .evaluateAll((parts) => parts.map((part) => part.dataset.section));
    assert.deepEqual(names, kSections);
    assert.equal(await page.locator('main h2').count(), 7);
    assert.equal(await seenCount(page), 1);
    for (const [i, name] of kSections.entries()) {
      await goTo(page, name);
      assert.match(await page.locator('.lesson-progress p').textContent(), new RegExp(`^${i + 1} of 7 · `));
      assert.equal(await seenCount(page), i + 1);
    }
    assert.match(await page.locator('#summary').textContent(), /^7 of 7 sections read, 0 of 6 questions done\./);
    const { layers, heads, tokens } = await stateOf(page);
    const weights = (layers * heads * tokens.length ** 2).toLocaleString('en');
    assert.ok((await page.locator('#summary').textContent()).includes(`${weights} weights`));
  });
});

test('the progress line leads to a section, by key too', async () => {
  await visit('', { reducedMotion: 'reduce' }, async (page) => {
    await settledLesson(page);
    await page.getByRole('button', { name: '4 Architecture' }).press('Enter');
    await page.locator('.lesson-progress button[aria-current][title=Architecture]').waitFor();
    const top = await page.locator('#part-architecture').evaluate((node) => node.getBoundingClientRect().top);
    assert.ok(Math.abs(top) < 2, `${top}`);
    assert.equal(await page.evaluate(() => document.activeElement.id), 'part-architecture-title');
  });
});

test('sections set the head; the reader takes over and goes back to the lesson', async () => {
  await visit('', {}, async (page) => {
    await settledLesson(page);
    assert.deepEqual(await headAt(page), [4, 2]);
    await goTo(page, 'formulas');
    assert.deepEqual(await headAt(page), [2, 3]);
    await goTo(page, 'mechanism');
    assert.deepEqual(await headAt(page), [4, 2]);
    const back = page.getByRole('button', { name: 'Back to the lesson’s view' });
    assert.equal(await back.count(), 0);
    await page.getByRole('radio', { name: /^L0·H2/ }).click();
    await back.waitFor();
    await goTo(page, 'formulas');
    assert.deepEqual(await headAt(page), [0, 2], 'the reader’s choice stays');
    await back.click();
    assert.deepEqual(await headAt(page), [2, 3]);
    assert.equal(await back.count(), 0);
  });
});

test('an address with a view of its own is not overruled', async () => {
  await visit('#head=1.1', {}, async (page) => {
    await goTo(page, 'formulas');
    assert.deepEqual(await headAt(page), [1, 1]);
    await page.getByRole('button', { name: 'Back to the lesson’s view' }).click();
    assert.deepEqual(await headAt(page), [2, 3]);
  });
});

test('the mask off and on: the instrument and the pictures follow', async () => {
  await visit('', {}, async (page) => {
    await goTo(page, 'formulas');
    const part = page.locator('#part-formulas');
    await part.getByRole('button', { name: 'Without the mask' }).click();
    assert.equal((await stateOf(page)).causal, false);
    await part.getByRole('img', { name: /^M, 34 by 34, from 0\.00 to 0\.00/ }).waitFor();
    const stepper = page.locator('#stepper');
    await stepper.getByRole('button', { name: 'Step 6' }).click();
    await stepper.getByText('This layer runs without a mask').waitFor();
    await part.getByRole('button', { name: 'With the mask' }).click();
    assert.equal((await stateOf(page)).causal, true);
    await stepper.getByText('Outside, every score is −∞').waitFor();
  });
});

test('another text changes what the lesson says', async () => {
  await visit('', {}, async (page) => {
    await settledLesson(page);
    await page.getByLabel('Your text').fill('one two three one two');
    const { tokens } = await stateOf(page);
    await page.getByText(`Your text has ${tokens.length} tokens, counted from 0`).waitFor();
    await page.locator('#stepper').getByText(`T = ${tokens.length},`).waitFor();
  });
});

test('the skip link leads to the lesson', async () => {
  await visit('', {}, async (page) => {
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'lesson');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), '1 Intuition');
  });
});

test('on a phone the instrument folds to tokens and a matrix of a third of the height, and its parts open on a tap', async () => {
  await visit('', { ...phone, hasTouch: true }, async (page) => {
    await settledLesson(page);
    await goTo(page, 'mechanism');
    const box = await page.locator('#stage').boundingBox();
    assert.ok(box.y === 0 && box.height < 844 * 0.36, JSON.stringify(box));
    const sees = (selector) => page.locator(selector).first().isVisible();
    assert.deepEqual(await Promise.all(['#tokens', '#map', '#readout'].map(sees)), [true, true, true]);
    assert.deepEqual(await Promise.all(['#text', '#head-grid', '#row-panel'].map(sees)), [false, false, false]);
    const fold = page.locator('#fold-bar');
    for (const [name, selector] of [
      ['Text', '#text'],
      ['Heads', '#head-grid'],
      ['Row', '#row-panel'],
    ]) {
      await fold.getByRole('button', { name }).tap();
      assert.ok(await sees(selector), name);
    }
    await unfold(page);
    assert.ok(await sees('#off-induction'));
    await fold.getByRole('button', { name: 'All' }).tap();
    assert.equal(await sees('#off-induction'), false);
  });
});

test('on a phone nothing scrolls sideways in any section, step or answer, and targets are large enough', async () => {
  await visit('', phone, async (page) => {
    await settledLesson(page);
    await page.locator('#code-pane summary').click();
    for (const name of kSections) {
      await goTo(page, name);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, name);
    }
    for (let step = 1; step <= 11; step++) {
      await page.getByRole('button', { name: `Step ${step}:` }).click();
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, `step ${step}`);
    }
    const small = await page.locator('main :is(button, select, input, summary)').evaluateAll((nodes) =>
      nodes
        .filter((node) => !node.classList.contains('link'))
        .map((node) => ({ name: node.outerHTML.slice(0, 90), ...node.getBoundingClientRect().toJSON() }))
        .filter(({ height, width }) => height > 0 && (height < 44 || width < 40)),
    );
    assert.deepEqual(small, []);
  });
});

for (const viewport of [phone.viewport, { width: 1100, height: 800 }, { width: 1440, height: 900 }]) {
  test(`no text of the lesson is cut off or lies over another at ${viewport.width} px`, async () => {
    await visit('', { viewport }, async (page) => {
      await settledLesson(page);
      const cut = await page
        .locator('main :is(p, h2, h3, td, th, dd, dt, legend, button, figcaption, label)')
        .evaluateAll((nodes) =>
          nodes
            .filter((node) => node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).display !== 'inline')
            .map((node) => node.outerHTML.slice(0, 120)),
        );
      assert.deepEqual(cut, []);
      const texts = await page.locator('.diagram .box text').evaluateAll((nodes) =>
        nodes.filter((node) => {
          const box = node.parentElement.querySelector('rect').getBoundingClientRect();
          const { left, right } = node.getBoundingClientRect();
          return left < box.left || right > box.right;
        }),
      );
      assert.equal(texts.length, 0);
    });
  });
}

test('formulas are set with the fonts that came along, and nothing else is fetched for them', async () => {
  const fonts = new Set();
  const arrange = (page) =>
    page.on('response', (response) => {
      if (/\.(woff2?|ttf)$/.test(response.url())) fonts.add(response.url().replace(/^.*\//, ''));
    });
  await visit('', { arrange }, async (page) => {
    await settledLesson(page);
    for (let step = 1; step <= 11; step++) await page.getByRole('button', { name: `Step ${step}:` }).click();
    await page.evaluate(() => document.fonts.ready);
    assert.ok(
      [...fonts].every((name) => name.endsWith('.woff2')),
      [...fonts].join(' '),
    );
    const missing = await page.evaluate(() => {
      const known = new Set([...document.fonts].map(({ family }) => family.replaceAll('"', '')));
      const wanted = new Set();
      for (const node of document.querySelectorAll('.katex-html *')) {
        if (![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue;
        wanted.add(getComputedStyle(node).fontFamily.split(',')[0].replaceAll('"', ''));
      }
      return [...wanted].filter((family) => !known.has(family));
    });
    assert.deepEqual(missing, []);
    assert.equal(await page.locator('.katex-error').count(), 0);
  });
});
