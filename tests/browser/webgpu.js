// Chromium with the package's own modules, for tests of the WebGPU backend: the browser brings a GPU driver that
// computes on the processor. An adapter that is missing there is a failure, not a reason to skip.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { chromium } from 'playwright-core';
import { kBrowserFlags, kWebgpuFlags } from './flags.js';
import { bringPackage, kPageName, servePackage } from './package-page.js';

/**
 * A browser for the tests of one file.
 * @param {{ webgpu?: boolean, arrange?: () => void }} [options] without `webgpu` there is no adapter; `arrange` runs in
 *   the page before the tests
 * @returns {{ page: import('playwright-core').Page, open: () => Promise<import('playwright-core').Page> }} `page` has the
 *   package as `packageEntry` and, with `webgpu`, an instance on it as `attention`; open() gives a further page without
 */
export function useGpuPage({ webgpu = true, arrange } = {}) {
  /** @type {import('playwright-core').Browser} */
  let browser;
  /** @type {Awaited<ReturnType<typeof serve>>} */
  let server;
  const used = { page: /** @type {any} */ (null), open };

  async function open() {
    const page = await browser.newPage();
    page.on('pageerror', (error) => assert.fail(`uncaught in the page: ${error.stack}`));
    await page.goto(server.url + kPageName);
    await page.evaluate(bringPackage);
    return page;
  }

  before(async () => {
    server = await servePackage();
    const args = webgpu ? [...kBrowserFlags, ...kWebgpuFlags] : kBrowserFlags;
    browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args });
    used.page = await open();
    if (arrange) await used.page.evaluate(arrange);
    if (!webgpu) return;
    await used.page.evaluate(async () => {
      window.attention = await window.packageEntry.load({ backend: 'webgpu' });
    });
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });
  return used;
}
