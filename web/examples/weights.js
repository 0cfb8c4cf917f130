// The attention weights of one head and two rows, at the cost of these alone.
import { load } from 'attention-wasm';

const attention = await load();
const [H, T, D] = [8, 1024, 64];
const x = { data: Float32Array.from({ length: H * T * D }, (_, i) => Math.sin(i)), shape: [1, H, T, D] };
const needWeights = { heads: [3], rows: [5, T - 1] };
const { weights } = attention.scaledDotProductAttention(x, x, x, { isCausal: true, needWeights });
const sums = [0, 1].map((row) => weights.data.subarray(row * T, (row + 1) * T).reduce((a, b) => a + b));
console.log(
  weights.shape,
  sums.map((sum) => sum.toFixed(3)),
); // [ 1, 1, 2, 1024 ] [ '1.000', '1.000' ]
attention.dispose();
