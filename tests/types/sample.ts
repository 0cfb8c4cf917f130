// How a TypeScript user sees the package. Compiled, not run: the strictest settings, without Node's types.
import { AttentionError, load, ropeFrequencies } from 'attention-wasm';

const attention = await load({ simd: 'auto', threads: 1 });
const { simd, threads, reasons } = attention.info;
const described: string = `${simd} ${threads.toFixed()} ${reasons.join()}`;

const x = { data: new Float32Array(2 * 3 * 4), shape: [1, 2, 3, 4] } as const;
const half = { data: new Uint16Array(24), shape: [2, 3, 4], dtype: 'bfloat16' as const };

const { output } = attention.scaledDotProductAttention(x, x, x, { isCausal: 'bottom-right', windowSize: [8, 0] });
const withWeights = attention.scaledDotProductAttention(x, x, half, { needWeights: true, returnLse: true });
const numbers: (Float32Array | undefined)[] = [withWeights.weights?.data, withWeights.lse?.data];
const sizes: readonly number[] = output.shape;

const resident = attention.tensor(null, [1, 2, 3, 4], 'float32');
attention.scaledDotProductAttention(resident, x, x, { attnMask: new Uint8Array(9), out: resident });
resident.dispose();

const turned = attention.rope(x, { style: 'half', scaling: { rope_type: 'linear', factor: 2 } });
const frequencies: Float64Array = ropeFrequencies({ rotaryDim: 4 }).frequencies;

const layer = attention.multiHeadAttention({ dModel: 4, numHeads: 2, rope: { style: 'interleaved' } });
layer.loadStateDict({ 'q_proj.weight': { data: new Float32Array(16), shape: [4, 4] } });
const result = layer.forward({ data: new Float32Array(12), shape: [1, 3, 4] }, { needWeights: true });
const weight: number | undefined = result.weights?.data[0];
layer.dispose();

try {
  // @ts-expect-error: the style of RoPE is required
  attention.rope(x, {});
  // @ts-expect-error: no such option
  attention.scaledDotProductAttention(x, x, x, { causal: true });
  // @ts-expect-error: no such build
  await load({ simd: 'fast' });
  // @ts-expect-error: a shape is required
  attention.tensor(null);
} catch (error) {
  if (error instanceof AttentionError && error.code === 'INVALID_OPTION') throw error;
}

export { described, frequencies, numbers, sizes, turned, weight };
