// Fills the structs of src/attention.h by field name. Offsets and kinds come from the module, once, at load.

/** @typedef {{ i32: Int32Array, f32: Float32Array }} Words */
/** @typedef {{ word: number, isFloat: boolean }} Field */

/**
 * The structs of the module by name.
 * @param {ArrayBufferLike} buffer the module's memory
 * @param {number} layouts what `_layouts()` returned
 * @returns {{ structs: Record<string, Struct>, largest: number }} `largest`: bytes of the largest struct
 */
export function readLayouts(buffer, layouts) {
  const words = new Uint32Array(buffer);
  /** @type {Record<string, Struct>} */
  const structs = {};
  let largest = 0;
  for (let at = layouts >>> 2; words[at] !== 0; at += 3) {
    const name = readName(buffer, words[at]);
    structs[name] = new Struct(name, readFields(buffer, words, words[at + 2] >>> 2));
    largest = Math.max(largest, words[at + 1]);
  }
  return { structs, largest };
}

/** @param {ArrayBufferLike} buffer @param {Uint32Array} words @param {number} at @returns {Map<string, Field>} */
function readFields(buffer, words, at) {
  const fields = new Map();
  for (; words[at] !== 0; at += 3) {
    fields.set(readName(buffer, words[at]), { word: words[at + 1] >>> 2, isFloat: words[at + 2] !== 0 });
  }
  return fields;
}

/** @param {ArrayBufferLike} buffer @param {number} pointer */
function readName(buffer, pointer) {
  const bytes = new Uint8Array(buffer, pointer);
  return String.fromCharCode(...bytes.subarray(0, bytes.indexOf(0)));
}

/** Writes one kind of struct. */
export class Struct {
  #name;
  #fields;
  /** The fields in the order of the object's keys. @type {Field[] | null} */
  #order = null;

  /** @param {string} name @param {Map<string, Field>} fields */
  constructor(name, fields) {
    this.#name = name;
    this.#fields = fields;
  }

  /**
   * Fills the struct at `pointer`. The object must come from one literal for all calls: the first call checks that its
   * keys are just the fields of the struct, and later ones rely on their order, which is many times faster.
   * @param {Words} words @param {number} pointer @param {Record<string, number>} values
   */
  write({ i32, f32 }, pointer, values) {
    const order = this.#order ?? this.#orderOf(Object.keys(values));
    const list = Object.values(values);
    if (list.length !== order.length) throw new TypeError(`struct ${this.#name}: other keys than in the first call`);
    const base = pointer >>> 2;
    for (let i = 0; i < list.length; ++i) {
      const { word, isFloat } = order[i];
      if (isFloat) f32[base + word] = list[i];
      else i32[base + word] = list[i];
    }
  }

  /** Sets one pointer. @param {Words} words @param {number} pointer @param {string} name @param {number} value */
  set({ i32 }, pointer, name, value) {
    i32[(pointer >>> 2) + /** @type {Field} */ (this.#fields.get(name)).word] = value;
  }

  /** @param {string[]} names */
  #orderOf(names) {
    const missing = [...this.#fields.keys()].find((name) => !names.includes(name));
    if (missing) throw new TypeError(`struct ${this.#name}: field ${missing} is missing`);
    const surplus = names.find((name) => !this.#fields.has(name));
    if (surplus) throw new TypeError(`struct ${this.#name}: there is no field ${surplus}`);
    this.#order = names.map((name) => /** @type {Field} */ (this.#fields.get(name)));
    return this.#order;
  }
}
