// Random numbers that are the same on every machine and at every visit.

/**
 * FNV-1a over UTF-16 units.
 * @param {string} text
 */
export function hashText(text) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return hash >>> 0;
}

/**
 * mulberry32: uniform on (0, 1).
 * @param {number} seed
 */
export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return (((bits ^ (bits >>> 14)) >>> 0) + 0.5) / 2 ** 32;
  };
}

/**
 * `count` normal numbers with the given standard deviation.
 * @param {number} seed @param {number} count @param {number} deviation
 */
export function normals(seed, count, deviation) {
  const next = uniform(seed);
  return Float32Array.from({ length: count }, () => {
    const radius = Math.sqrt(-2 * Math.log(next()));
    return deviation * radius * Math.cos(2 * Math.PI * next());
  });
}
