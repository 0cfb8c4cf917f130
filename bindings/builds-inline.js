// In place of builds.js in the single file of attention-wasm/inline: binaries in the code, and no threads, whose workers
// need files.
import baseline from '../dist/attention.baseline.js';
import baselineText from '../dist/attention.baseline.text.js';
import relaxed from '../dist/attention.relaxed.js';
import relaxedText from '../dist/attention.relaxed.text.js';
import scalar from '../dist/attention.scalar.js';
import scalarText from '../dist/attention.scalar.text.js';

/** @import { Build } from './builds.js' */
/** @import { Factory } from './wasm.js' */

/** @param {Factory} factory @param {string} text @returns {Build} */
const build = (factory, text) => ({ glue: async () => ({ default: factory }), text: async () => ({ default: text }) });

/** @type {Readonly<Record<string, Build>>} */
export const kBuilds = {
  scalar: build(scalar, scalarText),
  baseline: build(baseline, baselineText),
  relaxed: build(relaxed, relaxedText),
};

/** There is no file that could be missing. @type {Build | null} */
export const kCopy = null;
