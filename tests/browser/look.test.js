// What is painted, at which sizes, in which theme, and to whom it is accessible.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { stateOf, unfold, useBrowser, weightAt } from './support.js';

const visit = useBrowser();
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/**
 * The colour in the middle of a cell, of each of several, below the marks of the matrix. One reading for all of them:
 * Chromium warns of several.
 */
function colorsAt(page, cells) {
  return page.evaluate((wanted) => {
    const [base, marks] = document.getElementById('map').children;
    const cell = Number(marks.dataset.cell) * devicePixelRatio;
    const count = window.attentionPage.run.tokens.length;
    const { data } = base.getContext('2d').getImageData(0, 0, base.width, base.height);
    return wanted.map(([row, column]) => {
      const x = Math.round(base.width - (count - column - 0.25) * cell);
      const y = Math.round(base.height - (count - row - 0.25) * cell);
      return Array.from(data.subarray((y * base.width + x) * 4, (y * base.width + x) * 4 + 4));
    });
  }, cells);
}

test('the largest weight has the upper end of the scale, the smallest the lower end', async () => {
  await visit('', {}, async (page) => {
    const state = await stateOf(page);
    assert.equal(weightAt(state, [4, 2], 0, 0), 1);
    assert.ok(weightAt(state, [4, 2], 33, 13) < 0.005);
    const [highest, [red, green, blue]] = await colorsAt(page, [
      [0, 0],
      [33, 13],
    ]);
    assert.deepEqual(highest, [253, 234, 69, 255]);
    assert.ok(red < 30 && green < 60 && blue > 60, `${[red, green, blue]}`);
    assert.equal(await page.locator('#highest').textContent(), '1.000');
  });
});

test('what the mask hides has no colour of the scale', async () => {
  await visit('', {}, async (page) => {
    const [[red, green, blue, alpha]] = await colorsAt(page, [[2, 9]]);
    const spread = Math.max(red, green, blue) - Math.min(red, green, blue);
    assert.ok(alpha === 0 || spread < 20, `grey lines or nothing, got ${[red, green, blue, alpha]}`);
    assert.ok(await page.getByText('hidden by the mask').isVisible());
  });
});

test('a thumbnail shows its head: a previous-token head is a line below the diagonal', async () => {
  await visit('', {}, async (page) => {
    const light = await page.evaluate(() => {
      const canvas = document.querySelectorAll('.thumbnail canvas')[2 * 4 + 3];
      const { data, width } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const cell = width / window.attentionPage.run.tokens.length;
      const at = (row, column) => (Math.floor((row + 0.5) * cell) * width + Math.floor((column + 0.5) * cell)) * 4;
      return { line: data[at(20, 19)], beside: data[at(20, 10)], hidden: data[at(20, 30) + 3] };
    });
    assert.ok(light.line > 200 && light.beside < 40 && light.hidden === 0, JSON.stringify(light));
  });
});

async function assertAccessible(page) {
  await page.evaluate(axe);
  const { violations, passes } = await page.evaluate(() => window.axe.run(document));
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  assert.deepEqual(found, []);
  assert.ok(passes.length > 20, 'axe looked at the page');
}

const kWidths = {
  phone: { width: 390, height: 844 },
  tablet: { width: 800, height: 1000 },
  desk: { width: 1440, height: 900 },
};
const kTexts = {
  short: 'a+b',
  usual: '',
  words: `${'internationalisation+'.repeat(12)}`,
  long: 'and+so+on+'.repeat(60),
};

for (const [size, viewport] of Object.entries(kWidths)) {
  for (const [name, text] of Object.entries(kTexts)) {
    test(`nothing scrolls sideways: ${size}, ${name} text`, async () => {
      await visit(`#${text && `text=${text}`}`, { viewport }, async (page) => {
        const widths = await page.evaluate(() => [
          document.documentElement.scrollWidth,
          ...[...document.querySelectorAll('canvas')].map((node) => node.getBoundingClientRect().right),
        ]);
        for (const width of widths) assert.ok(width <= viewport.width, `${width} in ${viewport.width}`);
      });
    });
  }
}

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  test(`${colorScheme}: follows the system, switches, and remembers the choice`, async () => {
    await visit('', { colorScheme }, async (page) => {
      const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      const isDark = async () => Number((await ground()).match(/\d+/)[0]) < 128;
      assert.equal(await isDark(), colorScheme === 'dark');
      await page.getByRole('button', { name: colorScheme === 'dark' ? 'Light' : 'Dark' }).click();
      assert.equal(await isDark(), colorScheme !== 'dark');
      await page.reload();
      await page.waitForFunction(() => 'attentionPage' in window);
      assert.equal(await isDark(), colorScheme !== 'dark');
    });
  });

  for (const [size, viewport] of Object.entries(kWidths)) {
    test(`${colorScheme}, ${size}: axe finds nothing to mend`, async () => {
      await visit('#off=4.2', { colorScheme, viewport }, async (page) => {
        await page.evaluate(() => window.attentionPage.measured());
        await assertAccessible(page);
        await unfold(page);
        await page.locator('details.run summary').click();
        await assertAccessible(page);
        await page.getByRole('radio', { name: 'Untrained layer' }).check();
        await page.evaluate(() => window.attentionPage.settled());
        await assertAccessible(page);
      });
    });
  }
}

test('a long text: axe finds nothing to mend', async () => {
  await visit(`#text=${kTexts.long}`, {}, async (page) => assertAccessible(page));
});

test('with reduced motion nothing moves', async () => {
  await visit('', { reducedMotion: 'reduce' }, async (page) => {
    const moving = await page.evaluate(
      () =>
        [...document.querySelectorAll('*')].filter((node) =>
          ['', '::before', '::after'].some((part) => {
            const { transitionDuration, animationName } = getComputedStyle(node, part || null);
            return parseFloat(transitionDuration) > 0 || animationName !== 'none';
          }),
        ).length,
    );
    assert.equal(moving, 0);
  });
});
