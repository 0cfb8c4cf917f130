// Chromium and the built page for the tests of this folder. Every page that is opened here is watched: an error on the
// console, a failed request or one to another host fails the test at the end.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before } from 'node:test';
import { chromium } from 'playwright-core';
import { serve } from '../../tools/serve.js';
import { kBrowserFlags, kWebgpuFlags } from './flags.js';

const kPageFolder = resolve(import.meta.dirname, '../../build/page');

/** The browser of the tests. @param {{ webgpu?: boolean }} [options] without `webgpu` there is no adapter */
export const launch = ({ webgpu = true } = {}) =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: webgpu ? [...kBrowserFlags, ...kWebgpuFlags] : kBrowserFlags,
  });

/**
 * A browser and a server of the built page for the tests of one file.
 * @param {Parameters<typeof serve>[1]} [serverOptions] @param {Parameters<typeof launch>[0]} [browserOptions]
 * @returns `visit(path, options, body)`: opens the page, hands it to `body` when it has computed, and closes it again;
 *   `options` are Playwright's for a context (viewport, colorScheme, …), and `arrange`, which gets the page before it
 *   opens; `wait: false`, to have it before it has computed; `tolerated`, a pattern of complaints that are meant
 */
export function useBrowser(serverOptions, browserOptions) {
  /** @type {import('playwright-core').Browser} */
  let browser;
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let server;
  before(async () => {
    assert.ok(
      existsSync(join(kPageFolder, 'index.html')),
      'the page is not built: run npm test, which does that first',
    );
    server = await serve(kPageFolder, serverOptions);
    browser = await launch(browserOptions);
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });

  return async function visit(path, { arrange, wait = true, tolerated, ...options }, body) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    const page = await context.newPage();
    const complaints = watch(page, new URL(server.url).origin);
    try {
      await arrange?.(page);
      await page.goto(server.url + path);
      if (wait) await page.waitForFunction(() => 'attentionPage' in window);
      await body(page);
      assert.deepEqual(
        complaints.filter((complaint) => !tolerated?.test(complaint)),
        [],
      );
    } finally {
      await context.close();
    }
  };
}

/** @param {import('playwright-core').Page} page @param {string} origin */
function watch(page, origin) {
  /** @type {string[]} */
  const complaints = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`uncaught: ${error.message}`));
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && !['data:', 'blob:'].includes(url.protocol)) complaints.push(`foreign: ${url}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()}: ${response.url()}`);
  });
  return complaints;
}

/**
 * What the page shows once it has come to rest (web/src/session.js), with typed arrays as arrays; the weights of all
 * heads among it, 0 where the mask hides them.
 * @param {import('playwright-core').Page} page
 */
export function stateOf(page) {
  return page.evaluate(async () => {
    const session = window.attentionPage;
    await session.settled();
    const { state, run, candidates, model, info } = session;
    const plain = ({ data, shape }) => ({ data: Array.from(data), shape: Array.from(shape) });
    const { tokens, ids, prompt, total, layers, heads, causal, rules, changed, milliseconds, layer, build } = run;
    const weights = [];
    for (let i = 0; i < layers * heads && tokens.length > 0; i++) {
      const matrix = await session.matrixOf({ of: [[Math.floor(i / heads), i % heads]] });
      for (const value of matrix.data) weights.push(Number.isNaN(value) ? 0 : value);
    }
    return {
      ...{ state, tokens, ids, prompt, total, layers, heads, causal, rules, changed, milliseconds, candidates, model },
      ...{ info, weights, build },
      layer: layer && {
        ...{ x: plain(layer.x), output: plain(layer.output), config: layer.config },
        stateDict: Object.fromEntries(Object.entries(layer.stateDict).map(([name, tensor]) => [name, plain(tensor)])),
      },
    };
  });
}

/** Labels and effects, once they are measured. @param {import('playwright-core').Page} page */
export function measuresOf(page) {
  return page.evaluate(async () => {
    await window.attentionPage.measured();
    const { scores, effects } = window.attentionPage;
    return { scores, effects };
  });
}

/** Weight of query `row` for key `column`. @param {Awaited<ReturnType<typeof stateOf>>} state */
export function weightAt({ weights, heads, tokens: { length: T } }, [layer, head], row, column) {
  return weights[((layer * heads + head) * T + row) * T + column];
}

/** The middle of a cell of the matrix in page coordinates, from its rectangle and what the layout promises. */
export async function cellCenter(page, row, column) {
  return page.evaluate(
    ([r, c]) => {
      const canvas = document.querySelector('#map canvas:last-child');
      const part = JSON.parse(canvas.dataset.part);
      canvas.scrollIntoView({ block: 'center' });
      const { right, bottom } = canvas.getBoundingClientRect();
      return {
        x: right - (part.column + part.columns - c - 0.5) * Number(canvas.dataset.cell),
        y: bottom - (part.row + part.rows - r - 0.5) * Number(canvas.dataset.high),
      };
    },
    [row, column],
  );
}

/** Opens all of the instrument, where a narrow screen folds it. @param {import('playwright-core').Page} page */
export async function unfold(page) {
  const all = page.locator('#fold-bar').getByRole('button', { name: 'All' });
  if (await all.isVisible()) await all.click();
}
