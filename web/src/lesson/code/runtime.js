// Runs in a worker of its own, before the reader's code: what that may import, and a console that tells the page.
import * as attentionWasm from 'attention-wasm';

/** @param {unknown} value @returns {string} */
function shown(value) {
  if (typeof value === 'string') return value;
  if (ArrayBuffer.isView(value)) {
    const numbers = Array.from(/** @type {Float32Array} */ (value), (each) => Number(each.toPrecision(6)));
    return `[ ${numbers.slice(0, 24).join(', ')}${numbers.length > 24 ? ', …' : ''} ]`;
  }
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

const write = (/** @type {unknown[]} */ ...values) => self.postMessage({ line: values.map(shown).join(' ') });
for (const level of /** @type {const} */ (['log', 'info', 'warn', 'error'])) console[level] = write;

Object.assign(self, {
  lessonModules: { 'attention-wasm': attentionWasm },
  /** @param {Record<string, any>} exported */
  lessonExport({ output }) {
    self.postMessage({ output: output?.data ? { data: Float32Array.from(output.data), shape: output.shape } : null });
  },
});
