// The package's wasm backend over a module that computes nothing: what reaches a kernel is written down instead, every
// field of its struct and every array, as the package's own checks and its own frame put it there.
import { Frame } from '../../bindings/frame.js';
import { WasmBackend } from '../../bindings/wasm-backend.js';

/** What was placed in the block of the running call: bytes by the name of the struct's pointer. */
let placed = new Map();

const { place } = Frame.prototype;
/** @this {Frame} */
Frame.prototype.place = function (name, bytes) {
  placed.set(name, bytes);
  place.call(this, name, bytes);
};

const kBlock = 16;

/** Fields that are floats, which stand in a word of their bits. */
const kFloats = new Set(['scale', 'softcap']);
const floatOf = (word) => new Float32Array(Int32Array.of(word).buffer)[0];

export class RecordingBackend extends WasmBackend {
  /** The fields of the last call. */
  #fields = null;
  #arrays = null;

  constructor() {
    const module = {
      wasmMemory: { buffer: new ArrayBuffer(64) },
      _dotOfBytes: () => true, // so that every case of the table can be described
      _allocate: (bytes) => {
        module.wasmMemory.buffer = new ArrayBuffer(kBlock + bytes);
        return kBlock;
      },
      _release: () => this.#takeArrays(),
      _attentionScratch: () => 0,
      _attention: () => {},
    };
    super(module);
    this.memory.fill = (fields) => {
      this.#fields = fields;
      return 0;
    };
  }

  #takeArrays() {
    const { u8 } = this.memory.heap;
    this.#arrays = new Map(
      [...placed]
        .filter(([name]) => name !== 'scratch')
        .map(([name, bytes]) => [name, u8.slice(this.#fields[name], this.#fields[name] + bytes)]),
    );
  }

  /**
   * Runs a checked description and tells what a kernel would have been given.
   * @param {import('../../bindings/check-attention.js').AttentionCall} call
   * @returns {{ fields: Map<string, number>, arrays: Map<string, Uint8Array> }} results among the arrays are zeros
   */
  record(call) {
    placed = new Map();
    this.attention(call);
    const scalars = Object.entries(this.#fields)
      .filter(([name]) => !placed.has(name))
      .map(([name, word]) => [name, kFloats.has(name) ? floatOf(word) : word]);
    return { fields: new Map(scalars), arrays: this.#arrays };
  }
}
