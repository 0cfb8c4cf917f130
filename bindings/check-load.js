// The rules of load().
import { isAbsent, optionsOf } from './check.js';
import { refuse } from './errors.js';
import { kMostThreads } from './wasm.js';

/** @import { LoadOptions } from './types.js' */

const kLoadOptions = ['backend', 'simd', 'threads', 'wasmUrl', 'wasmBinary', 'device'];

/** @param {unknown} given @returns {LoadOptions} */
export function checkLoad(given) {
  const options = optionsOf('load', given, kLoadOptions);
  /** @param {string} name @param {unknown[]} values */
  const among = (name, values) => {
    const value = options[name];
    if (!isAbsent(value) && !values.includes(value)) {
      refuse('INVALID_OPTION', 'load', `${name} must be among ${values.join(', ')}`, value);
    }
  };
  among('backend', ['wasm', 'webgpu', 'auto']);
  among('simd', ['auto', 'relaxed', 'baseline', 'scalar']);
  const { threads, wasmUrl, wasmBinary } = options;
  if (typeof threads === 'number' && !(Number.isInteger(threads) && threads >= 1 && threads <= kMostThreads)) {
    refuse('INVALID_OPTION', 'load', `threads must be 'auto' or an integer of 1 to ${kMostThreads}`, threads);
  }
  if (typeof threads !== 'number') among('threads', ['auto']);
  if (!isAbsent(wasmUrl) && typeof wasmUrl !== 'string' && !(wasmUrl instanceof URL)) {
    refuse('INVALID_OPTION', 'load', 'wasmUrl must be a string or a URL', wasmUrl);
  }
  const isBytes = ArrayBuffer.isView(wasmBinary) || Object.prototype.toString.call(wasmBinary).endsWith('ArrayBuffer]');
  if (!isAbsent(wasmBinary) && !isBytes) {
    refuse('INVALID_OPTION', 'load', 'wasmBinary must be an ArrayBuffer or a view of one', wasmBinary);
  }
  if (!isAbsent(options.device) && typeof (/** @type {any} */ (options.device).createBuffer) !== 'function') {
    refuse('INVALID_OPTION', 'load', 'device must be a GPUDevice', options.device);
  }
  return options;
}
