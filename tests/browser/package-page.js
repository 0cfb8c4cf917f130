// A page that has the files of the package, without a bundler, for any browser.
import { resolve } from 'node:path';
import { serve } from '../../tools/serve.js';

export const kPageName = 'webgpu.html';
const kPage = '<!doctype html><link rel="icon" href="data:,">';

export const servePackage = () => serve(resolve(import.meta.dirname, '../..'), { pages: { [kPageName]: kPage } });

/** Runs in the page. */
export async function bringPackage() {
  window.packageEntry = await import('/dist/index.js');
  ({ Transformer: window.Transformer } = await import('/dist/transformer.js'));
}
