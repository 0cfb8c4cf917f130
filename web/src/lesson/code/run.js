// Runs the reader's module in a worker of its own. The worker is made from a Blob, so no text is ever evaluated here, and
// a policy without 'unsafe-eval' bears it, as long as it lets workers come from blob:.
import runtimeUrl from './runtime.js?worker&url';

/** @import { Tensor } from '../../types.js' */
/** @typedef {{ lines: string[], output: Tensor | null, error: string | null, milliseconds: number }} Outcome */

const kPatience = 20_000;
const kSilent = 'no reason given';

/**
 * Imports of the two modules that there are become constants, exports become messages; no line moves.
 * @param {string} code @param {Record<string, unknown>} given what './given.js' exports
 */
export function sourceFor(code, given) {
  const named = code
    .replace(/^import\s*\{([^}]*)\}\s*from\s*(['"][^'"\n]+['"]);?/gm, (_, names, from) => {
      return `const {${names.replace(/\bas\b/g, ':')}} = lessonModules[${from}] ?? lessonMissing(${from});`;
    })
    .replace(/^export\s*\{([^}]*)\};?/gm, (_, names) => `lessonExport({${names}});`);
  const runtime = new URL(runtimeUrl, import.meta.url).href;
  return (
    `import ${JSON.stringify(runtime)}; lessonModules['./given.js'] = lessonGiven(${JSON.stringify(given)}); ` +
    `function lessonGiven(all) { const make = (each) => each.data ? { data: Float32Array.from(each.data), shape: each.shape } ` +
    `: Object.fromEntries(Object.entries(each).map(([name, value]) => [name, make(value)])); return make(all); } ` +
    `function lessonMissing(name) { throw new Error('only attention-wasm and ./given.js can be imported here, not ' + name); } ` +
    `${named}\n;self.postMessage({ isDone: true });`
  );
}

/** @param {string} code @param {Record<string, unknown>} given @returns {Promise<Outcome>} */
export async function runModule(code, given) {
  const outcome = await runOnce(code, given);
  if (outcome.error !== kSilent) return outcome;
  // A browser says nothing of text that it can't read; nor does it when workers from text are forbidden.
  const isForbidden = (await runOnce('', {})).error !== null;
  const error = isForbidden
    ? 'This page’s policy forbids workers made from text, so the code can’t run here.'
    : 'The code can’t be read: there is a syntax error in it.';
  return { ...outcome, error };
}

/** @param {string} code @param {Record<string, unknown>} given @returns {Promise<Outcome>} */
function runOnce(code, given) {
  const start = performance.now();
  const url = URL.createObjectURL(new Blob([sourceFor(code, given)], { type: 'text/javascript' }));
  /** @type {string[]} */
  const lines = [];
  /** @type {Tensor | null} */
  let output = null;
  return new Promise((resolve) => {
    const worker = new Worker(url, { type: 'module' });
    const end = (/** @type {string | null} */ error) => {
      clearTimeout(timer);
      worker.terminate();
      URL.revokeObjectURL(url);
      resolve({ lines, output, error, milliseconds: performance.now() - start });
    };
    const timer = setTimeout(end, kPatience, `stopped after ${kPatience / 1000} s`);
    worker.addEventListener('message', ({ data }) => {
      if (data.line !== undefined) lines.push(data.line);
      if (data.output !== undefined) output = data.output;
      if (data.error !== undefined) end(data.error);
      if (data.isDone) end(null);
    });
    worker.addEventListener('error', (event) => {
      event.preventDefault();
      const place = event.lineno ? ` (line ${event.lineno})` : '';
      end(event.message ? `${event.message}${place}` : kSilent);
    });
  });
}
