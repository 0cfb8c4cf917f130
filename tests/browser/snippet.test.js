// The program that the page shows prints the numbers that the page shows, in Node, with the package alone.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { configs } from '../support/models.js';
import { assertClose } from '../support/tensors.js';
import { folderOf, vocabulary } from './own-files.js';
import { stateOf, useBrowser } from './support.js';

const visit = useBrowser();
const kRoot = resolve(import.meta.dirname, '../..');

/** A folder inside the package, which a program in it imports by name. */
async function inFolder(body) {
  mkdirSync(join(kRoot, 'build'), { recursive: true });
  const folder = mkdtempSync(join(kRoot, 'build/snippet-'));
  try {
    await body(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What the program of the page prints. */
async function printed(page, folder, ...args) {
  await page.locator('#take-away summary').click();
  const file = join(folder, 'attention.mjs');
  writeFileSync(file, await page.locator('#snippet').textContent());
  return JSON.parse(execFileSync(process.execPath, [file, ...args], { encoding: 'utf8' }));
}

/** The row in focus as the page has it; null where there is no number. */
const rowShown = (page) =>
  page.evaluate(() => {
    const { matrix, state } = window.attentionPage;
    const { data, columns, from } = matrix;
    const first = (state.focus.row - from) * columns;
    return Array.from(data.subarray(first, first + columns), (value) => (Number.isNaN(value) ? null : value));
  });

function assertRow(values, shown, show) {
  assert.equal(values.length, shown.length);
  shown.forEach((value, key) => {
    if (value !== null) assertClose([values[key]], [value], { absolute: 2e-4, what: `value of key ${key}` });
    else if (show === 'weights') assert.equal(values[key], 0);
  });
  assert.ok(shown.some((value) => Math.abs(value) > 0.01));
}

function assertNext(next, candidates) {
  for (const { id, probability } of next) {
    const known = candidates.find((each) => each.id === id);
    if (known) assertClose([probability], [known.after], { absolute: 1e-4, what: `probability of ${id}` });
  }
  assert.ok(candidates.some(({ id }) => id === next[0].id));
}

/** Addresses of all kinds of numbers. */
const kTrained = [
  '',
  '#head=2.3&off=2.2,3.3',
  '#view=mean&of=2.2,3.3,4.2&first=0&mass=0.9&cell=30.12',
  '#view=max',
  '#view=rollout&cell=20.3',
  '#show=scores&temp=2&cap=5&scale=2',
  '#show=change&mask=0&rotary=0&window=6&view=mean',
  '#text=Mr.+Darcy&added=300.17.400&head=1.1',
];

for (const hash of kTrained) {
  test(`the trained model: ${hash || 'the default'}`, async () => {
    await inFolder(async (folder) => {
      await visit(hash, {}, async (page) => {
        const { candidates, state } = await stateOf(page);
        const { row, values, next } = await printed(page, folder, join(kRoot, 'web/model'));
        assert.equal(row, state.focus.row);
        assertRow(values, await rowShown(page), state.show);
        assertNext(next, candidates);
      });
    });
  });
}

const kUntrained = [
  'head=0.2',
  'heads=2&causal=1&rope=1&seed=7&head=0.1&cell=6.2',
  'heads=8&view=mean&rope=1&first=0&mass=0.8',
  'heads=1&show=scores&rope=1',
  'heads=4&view=max&show=scores&causal=1&cell=9.3',
  'heads=2&view=rollout&causal=1',
  `text=${encodeURIComponent('“Don’t”, she\nsaid: \\ "no"; don’t!')}&head=0.3`,
];

for (const hash of kUntrained) {
  test(`the untrained layer: ${hash}`, async () => {
    await inFolder(async (folder) => {
      await visit(`#model=untrained&${hash}`, {}, async (page) => {
        const { state, layer } = await stateOf(page);
        const { row, values, output } = await printed(page, folder);
        assert.equal(row, state.focus.row);
        assertRow(values, await rowShown(page), state.show);
        const width = layer.config.dModel;
        assertClose(output, layer.output.data.slice(row * width, (row + 1) * width), { absolute: 1e-5 });
      });
    });
  });
}

test('a model of the reader’s own, in two files', async () => {
  await inFolder(async (folder) => {
    const { files } = folderOf({ ...configs['LLaMA, grouped heads, tied'], ...vocabulary });
    for (const { name, buffer } of files) writeFileSync(join(folder, name), buffer);
    await visit('#text=Elizabeth+was+pleased&head=1.3', {}, async (page) => {
      await page.locator('#own-files').setInputFiles(files);
      await page.waitForFunction(() => window.attentionPage.state.model === 'own');
      const { candidates, state } = await stateOf(page);
      const { values, next } = await printed(page, folder, folder);
      assertRow(values, await rowShown(page), state.show);
      assertNext(next, candidates);
    });
  });
});
