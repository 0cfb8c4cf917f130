// The uniform struct of a shader: one list of fields gives its WGSL text and fills it from JavaScript.

/** @typedef {{ name: string, type: 'i32' | 'u32' | 'f32' }} Field */

export class Layout {
  /** @type {Field[]} */
  #fields = [];

  /** @param {Partial<Record<Field['type'], string>>} fields names of each type, separated by spaces */
  constructor(fields) {
    for (const [type, names] of Object.entries(fields)) {
      for (const name of names.trim().split(/\s+/)) this.#fields.push({ name, type: /** @type {any} */ (type) });
    }
    /** Bytes, rounded up to what a uniform binding needs. */
    this.bytes = Math.ceil((this.#fields.length * 4) / 16) * 16;
    /** The struct and its binding, `p`, number 0 of group 0. */
    this.wgsl = `struct Parameters {\n${this.#fields.map(({ name, type }) => `  ${name}: ${type},\n`).join('')}}
@group(0) @binding(0) var<uniform> p: Parameters;\n`;
  }

  /**
   * Integers are taken modulo 2^32, so that the distance to a place before the bound part of a buffer can be added.
   * @param {DataView} view @param {number} offset @param {Record<string, number>} values a number for every field
   */
  write(view, offset, values) {
    this.#fields.forEach(({ name, type }, n) => {
      const value = values[name];
      if (typeof value !== 'number') throw new TypeError(`shader parameter ${name} must be a number, got ${value}`);
      if (type === 'f32') view.setFloat32(offset + 4 * n, value, true);
      else view.setInt32(offset + 4 * n, value, true);
    });
  }
}
