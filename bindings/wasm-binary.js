// Where the bytes of a build come from: the caller, a file, or the code itself.
import { isAbsent } from './check.js';
import { isNode, nodeModule } from './engine.js';

/** @import { Build } from './builds.js' */
/** @import { LoadOptions } from './types.js' */

/** Failures that mean: the file is not where it should be, or something else is. @type {WeakSet<object>} */
export const missing = new WeakSet();

/** @param {string} name @param {Build} build @param {LoadOptions} options @returns {Promise<WebAssembly.Module>} */
export async function compile(name, build, { wasmBinary, wasmUrl }) {
  if (wasmBinary) return WebAssembly.compile(/** @type {BufferSource} */ (wasmBinary));
  if (isAbsent(wasmUrl) && build.text) return WebAssembly.compile(await inflate((await build.text()).default));
  const bytes = await bytesFrom(isAbsent(wasmUrl) ? () => String(build.url?.()) : () => fileOf(String(wasmUrl), name));
  return WebAssembly.compile(bytes);
}

/** Of a folder, which of its files it is, is known only now. @param {string} url @param {string} name */
const fileOf = (url, name) => (url.endsWith('/') ? `${url}attention.${name}.wasm` : url);

/** Base64 of what deflate made of the binary: a third of its size. @param {string} text */
function inflate(text) {
  const packed = new Blob([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream('deflate-raw'))).arrayBuffer();
}

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
