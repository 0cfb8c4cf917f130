// Which lines of the package have run since this module was loaded, by the engine's own counters. It brings the package
// from its sources.
import './sources.js';
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';

/** Around what the engine knows nothing of: it has not run. */
const kNothing = { startOffset: 0, endOffset: Infinity, count: 0 };

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });

/**
 * Lines whose text matches but which have not run since the last look.
 * @param {string[]} paths the ends of the scripts' addresses @param {RegExp} pattern
 * @returns {Promise<string[]>} script, line number and text
 */
export async function unreachedLines(paths, pattern) {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return paths.flatMap((path) => {
    const script = result.find(({ url }) => url.endsWith(path));
    if (!script) throw new Error(`${path} was not loaded`);
    return unreachedIn(script, pattern).map((line) => `${path}:${line}`);
  });
}

function unreachedIn({ url, functions }, pattern) {
  const source = readFileSync(fileURLToPath(url), 'utf8');
  const ranges = functions.flatMap((fn) => fn.ranges);
  /** The count of the innermost range around an offset. */
  const countAt = (offset) =>
    ranges
      .filter(({ startOffset, endOffset }) => startOffset <= offset && offset < endOffset)
      .reduce((a, b) => (b.endOffset - b.startOffset <= a.endOffset - a.startOffset ? b : a), kNothing).count;
  const found = [...source.matchAll(new RegExp(pattern, 'g'))];
  if (found.length === 0) throw new Error(`${url}: nothing matches ${pattern}`);
  return found
    .filter(({ index }) => countAt(index) === 0)
    .map(({ index }) => `${source.slice(0, index).split('\n').length}: ${source.slice(index).split('\n')[0]}`);
}
