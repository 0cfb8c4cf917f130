// Which builds of the package this process can run, and an instance of each.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { relaxedSimd } from 'wasm-feature-detect';
import { load } from './package.js';

const hasRelaxed = await relaxedSimd();

/** Every build that CMake makes. A file that is missing then fails its tests; it is never left out. */
export const allBuilds = [
  ...readFileSync(new URL('../../bindings/emscripten.cmake', import.meta.url), 'utf8').matchAll(/^add_build\((\S+)/gm),
].map(([, name]) => name);

/**
 * The builds whose instructions this engine has. Only relaxed SIMD is ever lacking: Node before 22 has it behind a
 * flag. ATTENTION_BUILDS=scalar,baseline picks some of them.
 * @returns {string[]}
 */
export function builds() {
  const runnable = allBuilds.filter((name) => hasRelaxed || !name.startsWith('relaxed'));
  const wanted = process.env.ATTENTION_BUILDS?.split(',');
  if (!wanted) return runnable;
  for (const name of wanted) assert(runnable.includes(name), `ATTENTION_BUILDS: ${name} is not one of ${runnable}`);
  return wanted;
}

/**
 * A fresh instance of a build, and of no other.
 * @param {string} name @param {object} [options] further options of load()
 */
export async function loadBuild(name, options = {}) {
  const [simd, threaded] = name.split('-');
  const attention = await load({ simd, threads: threaded ? 2 : 1, ...options });
  assert.equal(attention.info.simd, simd);
  if (options.threads === undefined) assert.equal(attention.info.threads, threaded ? 2 : 1);
  return attention;
}
