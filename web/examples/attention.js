// Attention over plain arrays, causal.
import { load } from 'attention-wasm';

const attention = await load();
const [B, H, T, D] = [1, 2, 4, 8];
const values = (f) => ({ data: Float32Array.from({ length: B * H * T * D }, (_, i) => f(i)), shape: [B, H, T, D] });
const [q, k, v] = [values(Math.sin), values(Math.cos), values((i) => i % D)];
const { output } = attention.scaledDotProductAttention(q, k, v, { isCausal: true });
console.log(output.shape, output.data.subarray(0, D)); // row 0 sees itself alone: the first value, as it is
attention.dispose();
