// attention-wasm/transformer as a strict TypeScript user writes it. Checked, not run; what must not compile says so.
import { load } from 'attention-wasm';
import { readSafetensors } from 'attention-wasm/safetensors';
import {
  type AttentionCapture,
  type AttentionOverrides,
  type CapturedAttention,
  type ForwardOptions,
  type ForwardResult,
  type GeneratedToken,
  type GenerateOptions,
  type LoadProgress,
  Transformer,
  TransformerCache,
  type TransformerInfo,
  type WeightSource,
} from 'attention-wasm/transformer';

const attention = await load();
const config: Record<string, unknown> = JSON.parse('{}');
const bytes = new ArrayBuffer(8);
const sources: readonly WeightSource[] = [bytes, new Uint8Array(bytes), readSafetensors(bytes)];
const report = ({ loaded, total, name }: LoadProgress): void => console.log(loaded / total, name);
const model: Transformer = await Transformer.load(attention, {
  config,
  weights: sources,
  onProgress: report,
  signal: new AbortController().signal,
});
await Transformer.load(attention, { config, weights: bytes });
await Transformer.load(attention, {
  config,
  weights: { 'model.norm.weight': { data: new Float32Array(1), shape: [1] } },
});
// @ts-expect-error: there are no weights
await Transformer.load(attention, { config });
// @ts-expect-error: a path
await Transformer.load(attention, { config, weights: 'model.safetensors' });

const info: Readonly<TransformerInfo> = model.info;
const positions: number | null = info.positions;
const cache: TransformerCache = model.createCache({ capacity: 256, dtype: 'q8_0' });
// @ts-expect-error: a type that does not exist
model.createCache({ capacity: 256, dtype: 'int4' });
const capture: AttentionCapture = { layers: [0], heads: Int32Array.of(1), rows: null };
const options: ForwardOptions = { cache, logits: 'all', capture: { attention: capture, hidden: true } };
const { logits, attention: captured, hidden }: ForwardResult = model.forward([0, 1], options);
const values: Float32Array = logits.data;
const first: CapturedAttention | undefined = captured?.[0];
const weights: Float32Array | undefined = first?.weights.data;
const lens: Float32Array = model.logitLens(hidden?.[0] ?? logits).data;
const change: AttentionOverrides = { isCausal: false, temperature: 2, softcap: null, windowSize: [4, -1], rope: false };
const changed: ForwardResult = model.forward([0], { attention: change, capture: { queries: true, keys: true } });
const keys: Float32Array | undefined = changed.keys?.[0].data;
const [left, right]: readonly [number, number] = info.attention[0].windowSize;
// @ts-expect-error: a mask by name
model.forward([0], { attention: { isCausal: 'top-left' } });
// @ts-expect-error: the result may have no captured weights
captured[0].layer;
const settings: GenerateOptions = {
  maxTokens: 8,
  temperature: 0.8,
  topK: 40,
  topP: 0.95,
  seed: 1,
  cache,
  stopTokens: [2],
};
for await (const { token, logits: row } of model.generate(Uint16Array.of(0), settings)) {
  const step: GeneratedToken = { token, logits: row };
  const next: number = step.token;
  console.log(next);
}
model.disabledHeads = [
  [4, 0],
  [4, 2],
];
const off: readonly (readonly [number, number])[] = model.disabledHeads;
cache.truncate(2);
cache.restore(cache.snapshot());
cache.dispose();
model.dispose();
{
  using scoped = await Transformer.load(attention, { config, weights: bytes });
  using scopedCache = scoped.createCache({ capacity: 1 });
  console.log(scopedCache.length, scoped.disposed);
}

export { keys, left, lens, off, positions, right, TransformerCache, values, weights };
