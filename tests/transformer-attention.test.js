// A decoder with another attention than it was trained with, on every build against a float64 forward pass; and what its
// attention takes in.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Transformer } from 'attention-wasm/transformer';
import { builds, loadBuild } from './support/builds.js';
import { configs, weightsFor } from './support/models.js';
import { transformer as oracle } from './support/oracle-transformer.js';
import { random } from './support/random.js';
import { assertClose, assertSameBits } from './support/tensors.js';

const kTolerance = { absolute: 1e-5, relative: 1e-5 };
const flat = (rows) => Float64Array.from(rows.flat(9));
const textOf = ({ vocab_size }) => {
  const generator = random(29);
  return Array.from({ length: 29 }, () => generator.integer(0, vocab_size - 1));
};

const kChanges = {
  'no causal mask': { isCausal: false },
  'another scale': { scale: 0.2 },
  'a scale of 0: every row is even': { scale: 0 },
  'a temperature': { temperature: 0.25 },
  'a cap': { softcap: 0.4 },
  'a temperature behind a cap': { softcap: 0.4, temperature: 0.5, scale: 2 },
  'a window': { windowSize: [3, -1] },
  'a window to both sides': { isCausal: false, windowSize: [2, 5] },
  'no rotation': { rope: false },
  'all at once': { isCausal: false, scale: 0.9, temperature: 2, softcap: 3, windowSize: [-1, 4], rope: false },
};
const kModels = ['LLaMA, grouped heads, tied', 'Mistral, a window', 'Qwen3, norms of queries and keys', 'GPT-2'];

/** Values of the oracle, [token][head], in the order of the package. */
const byHead = (tokens) => flat(tokens[0].map((_, head) => tokens.map((heads) => heads[head])));

for (const build of builds()) {
  const attention = await loadBuild(build);

  describe(`another attention, ${build}`, () => {
    for (const name of kModels) {
      const config = configs[name];
      const weights = weightsFor(config);
      const tokens = textOf(config);
      for (const [what, change] of Object.entries(kChanges)) {
        test(`${name}: ${what}`, async () => {
          const want = oracle(config, weights, tokens, { attention: change });
          const model = await Transformer.load(attention, { config, weights });
          const held = attention.memory.allocated;
          const plain = model.forward(tokens, { logits: 'all' }).logits;
          const got = model.forward(tokens, { logits: 'all', attention: change, capture: { attention: true } });
          assertClose(got.logits.data, flat(want.logits), { ...kTolerance, what: 'logits' });
          got.attention.forEach(({ weights: captured }, l) => {
            assertClose(captured.data, flat(want.attention[l]), { ...kTolerance, what: `attention of layer ${l}` });
          });
          assertSameBits(model.forward(tokens, { logits: 'all' }).logits, plain);
          const hasEffect = !(name === 'GPT-2' && what === 'no rotation');
          const isOther = got.logits.data.some((value, i) => Math.abs(value - plain.data[i]) > 1e-4);
          assert.equal(isOther, hasEffect, 'the logits have changed');
          assert.equal(attention.memory.allocated, held);
          model.dispose();
        });
      }

      test(`${name}: what is left out is as the model was trained`, async () => {
        const model = await Transformer.load(attention, { config, weights });
        const plain = model.forward(tokens, { logits: 'all' }).logits;
        const named = { isCausal: true, temperature: 1, softcap: 0, rope: true, scale: null, windowSize: null };
        for (const change of [null, {}, named]) {
          assertSameBits(model.forward(tokens, { logits: 'all', attention: change }).logits, plain);
        }
        const { scale, windowSize } = model.info.attention[0];
        assertSameBits(model.forward(tokens, { logits: 'all', attention: { scale, windowSize } }).logits, plain);
        model.dispose();
      });

      test(`${name}: token by token, with a cache`, async () => {
        const model = await Transformer.load(attention, { config, weights });
        const change = { temperature: 0.6, softcap: 2, windowSize: [6, -1], rope: false };
        const want = oracle(config, weights, tokens, { attention: change });
        const cache = model.createCache({ capacity: tokens.length });
        const each = tokens.flatMap((token) => [...model.forward([token], { cache, attention: change }).logits.data]);
        assertClose(each, flat(want.logits), { absolute: 2e-5 });
        model.dispose();
      });

      test(`${name}: queries, keys and values as the attention takes them`, async () => {
        const model = await Transformer.load(attention, { config, weights });
        const { heads, kvHeads, headDim, layers } = model.info;
        const T = tokens.length;
        const plain = model.forward(tokens, { logits: 'all' });
        assert.deepEqual(Object.keys(plain), ['logits']);
        const got = model.forward(tokens, { logits: 'all', capture: { queries: true, keys: true, values: true } });
        assertSameBits(got.logits, plain.logits);
        const want = oracle(config, weights, tokens).projected;
        assert.deepEqual([got.queries.length, got.keys.length, got.values.length], [layers, layers, layers]);
        want.forEach(({ q, k, v }, l) => {
          assert.deepEqual(got.queries[l].shape, [heads, T, headDim]);
          assert.deepEqual(got.keys[l].shape, [kvHeads, T, headDim]);
          assertClose(got.queries[l].data, byHead(q), kTolerance);
          assertClose(got.keys[l].data, byHead(k), kTolerance);
          assertClose(got.values[l].data, byHead(v), kTolerance);
        });
        model.dispose();
      });
    }

    test('a stream of tokens with what each step captured, under another attention', async () => {
      const config = configs['LLaMA, grouped heads, tied'];
      const model = await Transformer.load(attention, { config, weights: weightsFor(config) });
      const prompt = [3, 14, 15];
      const change = { temperature: 0.5, windowSize: [4, -1] };
      const capture = { attention: { layers: [1], heads: [2] }, keys: true };
      const steps = [];
      for await (const step of model.generate(prompt, { maxTokens: 5, capture, attention: change })) steps.push(step);
      const text = [...prompt, ...steps.map(({ token }) => token)];
      const want = oracle(config, weightsFor(config), text.slice(0, -1), { attention: change });
      steps.forEach(({ attention: [captured], keys, logits }, i) => {
        const Tk = prompt.length + i;
        const rows = i === 0 ? [0, 1, 2] : [Tk - 1];
        assert.deepEqual(captured.weights.shape, [1, rows.length, Tk], 'fewer rows than columns');
        assertClose(captured.weights.data, flat(rows.map((row) => want.attention[1][2][row].slice(0, Tk))), kTolerance);
        assert.deepEqual(keys[0].shape, [2, rows.length, 6]);
        assertClose(logits.data, flat([want.logits[Tk - 1]]), kTolerance);
      });
      model.dispose();
    });
  });
}
