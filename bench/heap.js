// Remembers every WebAssembly.Memory of this process, so that one question serves libraries that hide theirs.
// Must be imported before them.

const memories = new Set();

const remember = (instance) => {
  for (const value of Object.values(instance.exports)) if (value instanceof NativeMemory) memories.add(value);
  return instance;
};

const NativeMemory = WebAssembly.Memory;
WebAssembly.Memory = class Memory extends NativeMemory {
  static [Symbol.hasInstance](value) {
    return Object.prototype.toString.call(value) === '[object WebAssembly.Memory]';
  }
  constructor(descriptor) {
    super(descriptor);
    memories.add(this);
  }
};

const NativeInstance = WebAssembly.Instance;
WebAssembly.Instance = class Instance extends NativeInstance {
  constructor(...args) {
    super(...args);
    remember(this);
  }
};

const nativeInstantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (...args) => {
  const result = await nativeInstantiate(...args);
  remember(result.instance ?? result);
  return result;
};

/** Bytes of all wasm memories, and the most that the whole process has held in memory. */
export function heapUse() {
  let wasm = 0;
  for (const { buffer } of memories) wasm += buffer.byteLength;
  return { wasm, process: process.resourceUsage().maxRSS * 1024 };
}
