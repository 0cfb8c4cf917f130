// Fills the structs of src/attention.h by field name. Offsets and kinds come from the module, once, at load.

/** @typedef {(heap: { i32: Int32Array, f32: Float32Array }, pointer: number, fields: Record<string, number>) => void} Writer */

/**
 * A writer for each struct of the module: name → writer. Every field has to be there, and no other: a mistake in one
 * is found by its first call.
 * @param {ArrayBufferLike} buffer the module's memory
 * @param {number} layouts what `_layouts()` returned
 * @returns {{ writers: Record<string, Writer>, largest: number }} `largest`: bytes of the largest struct
 */
export function readLayouts(buffer, layouts) {
  const words = new Uint32Array(buffer);
  /** @type {Record<string, Writer>} */
  const writers = {};
  let largest = 0;
  for (let at = layouts >>> 2; words[at] !== 0; at += 3) {
    const name = readName(buffer, words[at]);
    writers[name] = makeWriter(name, readFields(buffer, words, words[at + 2] >>> 2));
    largest = Math.max(largest, words[at + 1]);
  }
  return { writers, largest };
}

/** @param {ArrayBufferLike} buffer @param {Uint32Array} words @param {number} at */
function readFields(buffer, words, at) {
  const fields = [];
  for (; words[at] !== 0; at += 3) {
    fields.push({ name: readName(buffer, words[at]), word: words[at + 1] >>> 2, isFloat: words[at + 2] !== 0 });
  }
  return fields;
}

/** @param {ArrayBufferLike} buffer @param {number} pointer */
function readName(buffer, pointer) {
  const bytes = new Uint8Array(buffer, pointer);
  return String.fromCharCode(...bytes.subarray(0, bytes.indexOf(0)));
}

/**
 * @param {string} struct
 * @param {{ name: string, word: number, isFloat: boolean }[]} fields
 * @returns {Writer}
 */
function makeWriter(struct, fields) {
  const known = new Set(fields.map(({ name }) => name));
  return ({ i32, f32 }, pointer, values) => {
    const base = pointer >>> 2;
    for (const { name, word, isFloat } of fields) {
      const value = values[name];
      if (value === undefined) throw new TypeError(`struct ${struct}: field ${name} is missing`);
      if (isFloat) f32[base + word] = value;
      else i32[base + word] = value;
    }
    for (const name in values) {
      if (!known.has(name)) throw new TypeError(`struct ${struct}: there is no field ${name}`);
    }
  };
}
