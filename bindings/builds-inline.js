// In place of builds.js in the single file of attention-wasm/inline: binaries in the code, and no threads, whose workers
// need files.
import baseline from '../dist/attention.baseline.text.js';
import relaxed from '../dist/attention.relaxed.text.js';
import scalar from '../dist/attention.scalar.text.js';
import { inflate } from './inflate.js';
import { single } from './single.js';

/** @import { Build } from './builds.js' */

/** @param {string} text @returns {Build} */
const build = (text) => ({ bytes: () => inflate(text) });

/** @type {Readonly<Record<string, Build>>} */
export const kBuilds = { scalar: build(scalar), baseline: build(baseline), relaxed: build(relaxed) };

/** There is no file that could be missing. @type {Build | null} */
export const kCopy = null;

/** @type {any} none of the builds asks for them */
export const threads = null;

/** @param {Build} _build @param {WebAssembly.Module} compiled */
export const instantiate = (_build, compiled) => single(compiled);
