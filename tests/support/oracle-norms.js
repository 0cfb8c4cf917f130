// Normalisations and activation functions in float64, from the formulas.

/** Each row of the last axis by itself, in float64. */
function perRow({ data, shape }, row) {
  const width = shape.at(-1);
  const result = new Float64Array(data.length);
  for (let at = 0; at < data.length; at += width) result.set(row(Float64Array.from(data.subarray(at, at + width))), at);
  return { data: result, shape };
}

const mean = (x) => x.reduce((a, b) => a + b, 0) / x.length;

/** By the names of the package. */
export const norms = {
  rmsNorm: (x, { weight, epsilon = 1e-6 }) =>
    perRow(x, (row) => {
      const factor = 1 / Math.sqrt(mean(row.map((v) => v * v)) + epsilon);
      return row.map((v, c) => v * factor * (weight ? weight[c] : 1));
    }),
  layerNorm: (x, { weight, bias, epsilon = 1e-5 }) =>
    perRow(x, (row) => {
      const centre = mean(row);
      const factor = 1 / Math.sqrt(mean(row.map((v) => (v - centre) ** 2)) + epsilon);
      return row.map((v, c) => (v - centre) * factor * (weight ? weight[c] : 1) + (bias ? bias[c] : 0));
    }),
  softmax: (x) =>
    perRow(x, (row) => {
      const most = row.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
      if (most === Number.NEGATIVE_INFINITY) return row.fill(0);
      const powers = row.map((v) => Math.exp(v - most));
      const sum = powers.reduce((a, b) => a + b, 0);
      return powers.map((v) => v / sum);
    }),
};

/** erf by its series, or by the continued fraction of erfc beyond 3. */
function erf(x) {
  if (Number.isNaN(x)) return x;
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 3) {
    let term = x;
    let sum = x;
    for (let n = 1; n < 120; ++n) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = 0;
  for (let n = 60; n >= 1; --n) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-size * size) / (Math.sqrt(Math.PI) * (size + fraction)));
}

/** Of one number. */
export const activations = {
  silu: (x) => x / (1 + Math.exp(-x)),
  gelu: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
  'gelu, tanh': (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
};
