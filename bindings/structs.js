// The structs of src/attention.h, as JavaScript fills them: each stands as an object with a key for each field, in the
// order of its declaration there. All fields take one word, so its values are the struct (bindings.cpp and
// tests/structs.test.js hold the two against each other).

/** Bytes that any struct finds room in; bindings.cpp knows the number, too. */
export const kStructBytes = 512;

const real = new Float32Array(1);
const word = new Int32Array(real.buffer);

/** A float32 as the word that a field of that type takes. @param {number} value @returns {number} */
export function bitsOf(value) {
  real[0] = value;
  return word[0];
}
