// Attention as one writes it down in JavaScript: three loops a row, no library.

export function create(workload, inputs) {
  let output;
  const compute = workload.kind === 'layer' ? layer : attend;
  return {
    run() {
      output = compute(workload, inputs);
    },
    output: () => ({ data: output, layout: workload.kind === 'layer' ? 'bthd' : 'bhtd' }),
    dispose() {},
  };
}

/** q [H, Tq, D], k and v [Hkv, Tk, D], all as [heads, tokens, D]. */
function attend({ H, Hkv, Tq, Tk, D, causal }, { q, k, v }) {
  const output = new Float32Array(H * Tq * D);
  const weights = new Float32Array(Tk);
  const scale = 1 / Math.sqrt(D);
  for (let h = 0; h < H; ++h) {
    const first = Math.floor((h * Hkv) / H) * Tk;
    for (let i = 0; i < Tq; ++i) {
      const row = (h * Tq + i) * D;
      const end = causal ? i + Tk - Tq + 1 : Tk;
      let maximum = Number.NEGATIVE_INFINITY;
      for (let j = 0; j < end; ++j) {
        let sum = 0;
        for (let d = 0; d < D; ++d) sum += q[row + d] * k[(first + j) * D + d];
        weights[j] = sum * scale;
        maximum = Math.max(maximum, weights[j]);
      }
      let sum = 0;
      for (let j = 0; j < end; ++j) {
        weights[j] = Math.exp(weights[j] - maximum);
        sum += weights[j];
      }
      for (let j = 0; j < end; ++j) {
        const weight = weights[j] / sum;
        for (let d = 0; d < D; ++d) output[row + d] += weight * v[(first + j) * D + d];
      }
    }
  }
  return output;
}

function layer(workload, { x, wq, wk, wv, wo }) {
  const { E, H, Tq, D } = workload;
  const project = (values, weight) => linear(values, weight, Tq, E, E);
  const heads = (values) => regroup(values, Tq, H, D);
  const [q, k, v] = [wq, wk, wv].map((weight) => heads(project(x, weight)));
  return project(regroup(attend(workload, { q, k, v }), H, Tq, D), wo);
}

/** [M, K] times [N, K] transposed. */
function linear(x, weight, M, N, K) {
  const output = new Float32Array(M * N);
  for (let m = 0; m < M; ++m)
    for (let n = 0; n < N; ++n) {
      let sum = 0;
      for (let k = 0; k < K; ++k) sum += x[m * K + k] * weight[n * K + k];
      output[m * N + n] = sum;
    }
  return output;
}

/** [A, B, D] as [B, A, D]. */
function regroup(values, A, B, D) {
  const result = new Float32Array(values.length);
  for (let a = 0; a < A; ++a)
    for (let b = 0; b < B; ++b) for (let d = 0; d < D; ++d) result[(b * A + a) * D + d] = values[(a * B + b) * D + d];
  return result;
}
