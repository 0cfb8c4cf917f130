// What is painted, at which sizes, in which theme, and to whom it is accessible.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { stateOf, useBrowser } from './support.js';

const visit = useBrowser();
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The colour in the middle of a cell of the map below the marks. */
function colorAt(page, head, row, column) {
  return page.evaluate(
    ([h, r, c]) => {
      const [base, marks] = document.querySelectorAll('.canvases')[h].children;
      const cell = Number(marks.dataset.cell) * devicePixelRatio;
      const count = window.attentionPage.tokens.length;
      const x = Math.round(base.width - (count - c - 0.25) * cell);
      const y = Math.round(base.height - (count - r - 0.25) * cell);
      return Array.from(base.getContext('2d').getImageData(x, y, 1, 1).data);
    },
    [head, row, column],
  );
}

test('the largest weight has the upper end of the scale, the smallest is near the lower end', async () => {
  await visit('', {}, async (page) => {
    const { weights } = await stateOf(page);
    const at = (value) => {
      const index = weights.data.indexOf(value);
      return [Math.floor(index / 169), Math.floor((index % 169) / 13), index % 13];
    };
    const highest = Math.max(...weights.data);
    assert.deepEqual(await colorAt(page, ...at(highest)), [253, 234, 69, 255]);
    const [red, green, blue] = await colorAt(page, ...at(Math.min(...weights.data)));
    assert.ok(red < 30 && green < 60 && blue > 60, `${[red, green, blue]}`);
    assert.equal(await page.locator('#highest').textContent(), highest.toFixed(3));
  });
});

test('what the mask hides has no colour of the scale', async () => {
  await visit('#causal=1', {}, async (page) => {
    const [red, green, blue, alpha] = await colorAt(page, 0, 2, 9);
    const spread = Math.max(red, green, blue) - Math.min(red, green, blue);
    assert.ok(alpha === 0 || spread < 20, `grey lines or nothing, got ${[red, green, blue, alpha]}`);
    assert.ok(await page.getByText('hidden by the mask').isVisible());
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
      await visit(`#causal=1${text && `&text=${text}`}`, { viewport }, async (page) => {
        const widths = await page.evaluate(() => [
          document.documentElement.scrollWidth,
          ...[...document.querySelectorAll('.canvases canvas')].map((node) => node.getBoundingClientRect().right),
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
      await visit('#causal=1&rope=1', { colorScheme, viewport }, async (page) => {
        await page.locator('details.run summary').click();
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
