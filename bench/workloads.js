// The workloads: their sizes, what is counted for them, and their inputs.
//
// Letters as in src/attention.h; B is 1 everywhere. `causal` is bottom-right: with one query row it sees every key.

/** @typedef {{ id: string, kind: 'attention' | 'layer', causal: boolean, plain?: boolean, title: string, H: number, Hkv: number, Tq: number, Tk: number, D: number, E?: number }} Workload */

const attention = (title, H, Hkv, Tq, Tk, D, options = {}) => ({
  ...{ kind: 'attention', title, H, Hkv, Tq, Tk, D, causal: true },
  ...options,
});

/** @type {Record<string, Workload>} */
export const workloads = {
  P1: attention('prefill, causal, H=12 T=512 D=64', 12, 12, 512, 512, 64),
  P2: attention('prefill, causal, H=12 T=2048 D=64', 12, 12, 2048, 2048, 64),
  P3: attention('full, H=12 T=1024 D=64', 12, 12, 1024, 1024, 64, { causal: false }),
  P4: attention('grouped-query prefill, causal, H=32 Hkv=8 T=1024 D=128', 32, 8, 1024, 1024, 128),
  D1: attention('decode, Tk=4096 H=32 Hkv=8 D=128', 32, 8, 1, 4096, 128),
  D2: attention('decode, Tk=16384 H=8 D=128', 8, 8, 1, 16384, 128),
  M1: {
    ...attention('multi-head layer, causal, T=512 E=768 H=12', 12, 12, 512, 512, 64),
    ...{ kind: 'layer', E: 768 },
  },
  // Arrays of JavaScript in, arrays of JavaScript out.
  S1: attention('small call, H=4 T=32 D=16', 4, 4, 32, 32, 16, { causal: false, plain: true }),
};
for (const [id, workload] of Object.entries(workloads)) workload.id = id;

/** Half of the scores are hidden where both lengths agree; one row at the end sees all of them. */
const seen = ({ causal, Tq, Tk }) => (causal && Tq === Tk ? 0.5 : 1);

/** Floating-point operations that are counted, whatever is really computed. */
export function flops(workload) {
  const { H, Tq, Tk, D, E } = workload;
  const projections = workload.kind === 'layer' ? 2 * 4 * Tq * E * E : 0;
  return projections + 4 * H * Tq * Tk * D * seen(workload);
}

/** Bytes of inputs and output. */
export function tensorBytes({ kind, H, Hkv, Tq, Tk, D, E }) {
  if (kind === 'layer') return 4 * (2 * Tq * E + 4 * E * E);
  return 4 * (2 * H * Tq * D + 2 * Hkv * Tk * D);
}

/** Uniform float32 values of mean 0 and the given deviation, from a seed (xorshift). */
export function randomValues(count, seed, deviation = 1) {
  const values = new Float32Array(count);
  const step = (2 * Math.sqrt(3) * deviation) / 2 ** 32;
  let state = seed | 0 || 1;
  for (let i = 0; i < count; ++i) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    values[i] = state * step;
  }
  return values;
}

/** Attention: q, k, v as [1, heads, tokens, D]. A layer: x as [1, Tq, E] and four weights as [E out, E in]. */
export function inputs({ kind, H, Hkv, Tq, Tk, D, E }) {
  if (kind === 'layer') {
    const weight = (seed) => randomValues(E * E, seed, 1 / Math.sqrt(E));
    return { x: randomValues(Tq * E, 11), wq: weight(12), wk: weight(13), wv: weight(14), wo: weight(15) };
  }
  const [q, k, v] = [H * Tq * D, Hkv * Tk * D, Hkv * Tk * D].map((count, n) => randomValues(count, 21 + n));
  return { q, k, v };
}

/** [heads, tokens, D] as [tokens, heads, D], and back with the first two sizes changed over. */
export function swapAxes(values, heads, tokens, D) {
  const result = new Float32Array(values.length);
  for (let h = 0; h < heads; ++h)
    for (let t = 0; t < tokens; ++t)
      result.set(values.subarray((h * tokens + t) * D, (h * tokens + t + 1) * D), (t * heads + h) * D);
  return result;
}
