// Seeded random numbers: the same inputs on every machine, build and backend.

/** A generator of numbers in [0, 1) (mulberry32), with the shapes of data that tests need. */
export function random(seed) {
  let state = seed >>> 0;

  function uniform() {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  function normal() {
    return Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  }

  /** An integer from `low` to `high`, both included. */
  function integer(low, high) {
    return low + Math.floor(uniform() * (high - low + 1));
  }

  function pick(list) {
    return list[integer(0, list.length - 1)];
  }

  /** Normally distributed float32 values. */
  function tensor(shape, deviation = 1) {
    const data = new Float32Array(shape.reduce((product, size) => product * size, 1));
    for (let i = 0; i < data.length; ++i) data[i] = deviation * normal();
    return { data, shape };
  }

  /** A boolean mask; each element is 1 with the given probability. */
  function booleans(shape, probability = 0.6) {
    const data = new Uint8Array(shape.reduce((product, size) => product * size, 1));
    for (let i = 0; i < data.length; ++i) data[i] = uniform() < probability ? 1 : 0;
    return { data, shape };
  }

  return { uniform, normal, integer, pick, tensor, booleans };
}

/** A seed from a text, so that a case's data doesn't change when another case is put before it. */
export function seedOf(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; ++i) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
