// Where the bytes of a build come from: the caller, a file, or the code itself.
import { isAbsent } from './check.js';
import { isNode, nodeModule } from './engine.js';

/** @import { Build } from './builds.js' */
/** @import { LoadOptions } from './types.js' */

/** Failures that mean: the file is not where it should be, or something else is. @type {WeakSet<object>} */
export const missing = new WeakSet();

/** @param {string} name @param {Build} build @param {LoadOptions} options @returns {Promise<WebAssembly.Module>} */
export async function compile(name, build, { wasmBinary, wasmUrl }) {
  const isNamed = !isAbsent(wasmUrl);
  const bytes =
    wasmBinary ||
    (!isNamed && (await build.bytes?.())) ||
    (await bytesFrom(() => (isNamed ? fileOf(String(wasmUrl), name) : String(build.url?.()))));
  return WebAssembly.compile(/** @type {BufferSource} */ (bytes));
}

/** Of a folder, which of its files it is, is known only now. @param {string} url @param {string} name */
const fileOf = (url, name) => (url.endsWith('/') ? `${url}attention.${name}.wasm` : url);

/** @param {() => string} locate fails where a bundler took import.meta away @returns {Promise<BufferSource>} */
async function bytesFrom(locate) {
  try {
    const url = locate();
    const [bytes, type] = await read(url);
    if (bytes[0] === 0 && bytes[1] === 0x61) return bytes; // \0asm
    const start = JSON.stringify(String.fromCharCode(...bytes.subarray(0, 15)));
    throw new Error(`no wasm${type && ` but ${type}`} at ${url.slice(0, 200)}: it begins with ${start}`);
  } catch (cause) {
    missing.add(/** @type {Error} */ (cause));
    throw cause;
  }
}

/** @param {string} url @returns {Promise<[Uint8Array<ArrayBuffer>, string]>} */
async function read(url) {
  const isUrl = /^[a-z][a-z\d+.-]+:/i.test(url);
  if (isNode() && (!isUrl || url.startsWith('file:'))) {
    const { readFile } = /** @type {typeof import('node:fs/promises')} */ (await nodeModule('fs/promises'));
    return [await readFile(isUrl ? new URL(url) : url), ''];
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`HTTP status ${response.status} for ${url}`);
  return [new Uint8Array(await response.arrayBuffer()), response.headers.get('Content-Type') ?? ''];
}
