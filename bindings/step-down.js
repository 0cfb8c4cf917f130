// What load() goes on with when the best build did not come up: the next lower ones, and a copy in the code.
import { kBuilds, kCopy } from './builds.js';
import { isAbsent } from './check.js';
import { bringUp } from './wasm.js';
import { missing } from './wasm-binary.js';

/** @import { Build } from './builds.js' */
/** @import { LoadOptions } from './types.js' */
/** @import { Candidate, Loaded, Simd } from './wasm.js' */

/** From the best to the one that runs wherever wasm does. @type {readonly Simd[]} */
const kLevels = ['relaxed', 'baseline', 'scalar'];

/**
 * @param {LoadOptions} options checked @param {Candidate} best what failed @param {string[]} reasons
 * @param {unknown} failure why it did
 * @returns {Promise<Loaded>}
 */
export async function stepDown(options, best, reasons, failure) {
  /** The first of each kind of build. @type {{ single?: unknown, threaded?: unknown }} */
  const failures = {};
  let failed = best;
  let error = failure;
  for (const next of [...lower(options, best), null]) {
    failures[failed.threads > 1 ? 'threaded' : 'single'] ??= error;
    const { message, cause } = /** @type {Error} */ (error);
    const build = failed.threads > 1 ? 'threads: the build with threads' : `${failed.simd}: the build`;
    reasons.push(`${build} did not load (${message})`);
    if (missing.has(/** @type {any} */ (cause)) && mayBeCopied(options)) {
      reasons.push('files: missing, so the copy of the baseline build in the code is used');
      const copy = /** @type {const} */ ({ name: 'baseline', simd: 'baseline', threads: 1 });
      return bringUp(copy, /** @type {Build} */ (kCopy), {}, reasons);
    }
    if (!next) break;
    failed = next;
    try {
      return await bringUp(next, kBuilds[next.name], options, reasons);
    } catch (another) {
      error = another;
    }
  }
  throw failures.single ?? failures.threaded; // that of the best build without threads tells most
}

/** @param {unknown} value */
const isAuto = (value) => isAbsent(value) || value === 'auto';

/**
 * What else may come up, the best first. Only 'auto' leaves a choice.
 * @param {LoadOptions} options @param {Candidate} best @returns {Candidate[]}
 */
function lower(options, best) {
  const levels = isAuto(options.simd) ? kLevels.slice(kLevels.indexOf(best.simd)) : [best.simd];
  const all = levels.flatMap((simd) => {
    const single = { name: simd, simd, threads: 1 };
    if (best.threads === 1 || simd === 'scalar') return [single];
    const threaded = { name: `${simd}-mt`, simd, threads: best.threads };
    return isAuto(options.threads) ? [threaded, single] : [threaded];
  });
  return all.slice(1);
}

/** @param {LoadOptions} options */
function mayBeCopied({ simd, threads, wasmUrl, wasmBinary }) {
  return (
    kCopy &&
    isAbsent(wasmUrl) &&
    isAbsent(wasmBinary) &&
    (isAuto(simd) || simd === 'baseline') &&
    (isAuto(threads) || threads === 1)
  );
}
