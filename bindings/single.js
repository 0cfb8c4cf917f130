// The JavaScript of a build without threads, in place of Emscripten's own, which is three times as much: the few functions
// that the binary asks for, by the short names that the linker gave them (tools/glue.js reads them).
import { kCopy, kGrow, kImports, kMemory, kRegister, kStart, kTable } from '../dist/attention.names.js';
import { kMostBytes } from './memory.js';

/** @import { WasmModule } from './wasm.js' */

const kPage = 2 ** 16;

/** @param {WebAssembly.Module} compiled @returns {Promise<WasmModule>} */
export async function single(compiled) {
  /** @type {any} */
  const module = {};
  const functions = {
    /** As in embind.library.js. @param {number} name @param {number} _count @param {number} _types @param {number} signature @param {number} invoker @param {number} target */
    [kRegister]: (name, _count, _types, signature, invoker, target) => {
      const call = exports[kTable].get(invoker);
      const isUnsigned = text(signature)[0] === 'p';
      module[text(name)] = (/** @type {number[]} */ ...args) => {
        const value = call(target, ...args);
        return isUnsigned ? value >>> 0 : value;
      };
    },
    /** memcpy, for many bytes. @param {number} to @param {number} from @param {number} count */
    [kCopy]: (to, from, count) => {
      const start = from >>> 0;
      heap().copyWithin(to >>> 0, start, start + (count >>> 0));
    },
    /** A little more than asked for, or just that. @param {number} wanted bytes of all @returns {number} whether it came */
    [kGrow]: (wanted) => {
      const least = wanted >>> 0;
      const held = memory.buffer.byteLength;
      for (const size of least > kMostBytes ? [] : [Math.max(least, held + 2 ** 20), least]) {
        try {
          memory.grow(Math.ceil((Math.min(size, kMostBytes) - held) / kPage));
          return 1;
        } catch {
          /* then less */
        }
      }
      return 0;
    },
  };
  /** @type {any} */
  const { exports } = await WebAssembly.instantiate(compiled, { [kImports]: functions });
  /** @type {WebAssembly.Memory} */
  const memory = exports[kMemory];
  const heap = () => new Uint8Array(memory.buffer);
  /** @param {number} at */
  const text = (at) => {
    const bytes = heap();
    return String.fromCharCode(...bytes.subarray(at, bytes.indexOf(0, at)));
  };
  module.wasmMemory = memory;
  exports[kStart]();
  return module;
}
