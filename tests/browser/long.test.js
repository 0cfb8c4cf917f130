// A thousand tokens: all of them, at once, without holding the page up, and without a matrix for each head on its side.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useBrowser } from './support.js';

const visit = useBrowser();
const sentence = 'Mr. Darcy and Miss Bingley walked to Netherfield and were pleased. ';
const textOf = (count) => `#text=${encodeURIComponent(sentence.repeat(count))}`;

/** Keeps how long each drawing took. */
const watchDrawings = (page) =>
  page.addInitScript(() => {
    window.drawings = { 'draw matrix': [], 'draw thumbnails': [] };
    new PerformanceObserver((list) => {
      for (const { name, duration } of list.getEntries()) window.drawings[name]?.push(duration);
    }).observe({ type: 'measure' });
  });

test('1,024 tokens and more: all shown, with a note that the model was trained on fewer', async () => {
  await visit(textOf(47), {}, async (page) => {
    const { T, matrix, thumbnails, elements } = await page.evaluate(async () => {
      await window.attentionPage.settled();
      const { run, matrix } = window.attentionPage;
      const canvases = [...document.querySelectorAll('.thumbnail canvas')];
      return {
        T: run.tokens.length,
        matrix: [matrix.data.length, matrix.columns],
        thumbnails: canvases.map(({ width }) => width),
        elements: document.querySelectorAll('#instrument *').length,
      };
    });
    assert.ok(T >= 1024, `${T} tokens`);
    assert.deepEqual(matrix, [T * T, T]);
    assert.deepEqual(new Set(thumbnails), new Set([64]));
    assert.ok(elements < 5 * T, 'elements grow with the tokens, not with their square');
    const note = await page.locator('#token-count').textContent();
    assert.match(note, /^1,0\d\d tokens\. That is past the 256 tokens that the model was trained on/);
    assert.equal(await page.locator('#row-panel tbody tr').count(), 32);
    assert.match(await page.locator('#row-panel tfoot').textContent(), /and \d+ more, which weigh less or are hidden/);
  });
});

test('what is beyond 2,048 tokens is left out, and the page says so', async () => {
  await visit(textOf(110), {}, async (page) => {
    await page.evaluate(() => window.attentionPage.settled());
    assert.match(await page.locator('#token-count').textContent(), /^The first 2,048 of 2,\d\d\d tokens;/);
    assert.ok(await page.getByRole('application', { name: /2048 by 2048 tokens/ }).isVisible());
  });
});

test('1,024 tokens: the first paint and the matrix of another text within 2 s', async () => {
  await visit(textOf(47), {}, async (page) => {
    const times = await page.evaluate(async () => {
      const session = window.attentionPage;
      await session.measured();
      const start = performance.now();
      const text = document.getElementById('text');
      text.value += ' Again.';
      text.dispatchEvent(new Event('input'));
      await new Promise((resolve) => {
        const before = session.matrix;
        const look = () =>
          session.matrix === before ? setTimeout(look, 4) : requestAnimationFrame(() => setTimeout(resolve));
        look();
      });
      const shown = performance.now() - start;
      const firstPaint = performance.getEntriesByName('first-contentful-paint')[0].startTime;
      return { shown, firstPaint };
    });
    assert.ok(times.firstPaint < 2000, `${times.firstPaint} ms to the first paint`);
    assert.ok(times.shown < 2000, `${times.shown} ms from the key to the matrix`);
  });
});

test('256 and 1,024 tokens: no drawing holds the page’s thread for 50 ms', async () => {
  for (const count of [11, 47]) {
    await visit(textOf(count), { arrange: watchDrawings }, async (page) => {
      const drawings = await page.evaluate(async () => {
        await window.attentionPage.measured();
        for (const list of Object.values(window.drawings)) list.length = 0;
        const text = document.getElementById('text');
        for (let i = 0; i < 5; i++) {
          text.value += ' and';
          text.dispatchEvent(new Event('input'));
          await window.attentionPage.settled();
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        return window.drawings;
      });
      // Other programs may take the processor away now and then; the usual time is what the page itself takes.
      for (const [name, times] of Object.entries(drawings)) {
        assert.ok(times.length >= 5, `${name}: ${times.length} times`);
        const usual = times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
        assert.ok(usual < 50, `${name}: ${times} ms with ${count} sentences`);
      }
    });
  }
});

test('1,024 tokens: a step of the pointer within 50 ms, and all views follow', async () => {
  await visit(textOf(47), {}, async (page) => {
    const { steps, rows, ends } = await page.evaluate(async () => {
      const session = window.attentionPage;
      await session.measured();
      const canvas = document.querySelector('#map canvas:last-child');
      canvas.scrollIntoView({ block: 'center' });
      const { right, bottom, width } = canvas.getBoundingClientRect();
      const steps = [];
      const rows = new Set();
      for (let i = 0; i < 41; i++) {
        const at = { clientX: right - width / 2 - i * 2, clientY: bottom - 20 - i * 3, bubbles: true };
        const begin = performance.now();
        canvas.dispatchEvent(new PointerEvent('pointermove', at));
        await new Promise((resolve) => setTimeout(resolve)); // behind what the step has queued
        canvas.getBoundingClientRect(); // and its layout
        steps.push(performance.now() - begin);
        rows.add(session.state.focus.row);
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
      await session.settled();
      await new Promise((resolve) => setTimeout(resolve, 200));
      const { row } = session.state.focus;
      const texts = ['#readout', '#row-panel caption', '#next caption'].map(
        (each) => document.querySelector(each).textContent,
      );
      const asks = document.querySelector('#tokens .asks').dataset.index;
      return { steps: steps.sort((a, b) => a - b), rows: rows.size, ends: { row, texts, asks } };
    });
    assert.equal(rows, 41, 'each step moves the focus');
    for (const text of ends.texts) assert.match(text, new RegExp(`\\b${ends.row} “`));
    assert.equal(Number(ends.asks), ends.row);
    // Other programs may take the processor away at any step; the quicker half is what the page itself takes.
    assert.ok(steps[20] < 50, `steps of ${steps} ms`);
  });
});
