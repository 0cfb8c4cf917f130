// Decoding: keys and values of the tokens so far stay in a cache, and each new token attends to all of them.
import { load } from 'attention-wasm';

const attention = await load();
const [numKvHeads, H, D] = [2, 4, 16];
const cache = attention.keyValueCache({ numKvHeads, headDim: D, capacity: 128, dtype: 'float16' });
const token = (heads, at) => ({ data: new Float32Array(heads * D).fill(Math.sin(at)), shape: [1, heads, 1, D] });
for (let position = 0; position < 5; ++position) {
  const [q, k] = [token(H, position), token(numKvHeads, position)].map((x) =>
    attention.rope(x, { style: 'half', offset: position }),
  );
  cache.append(k, token(numKvHeads, position));
  const { output } = cache.attend(q);
  console.log(position, cache.length, output.data[0].toFixed(4));
}
attention.dispose();
