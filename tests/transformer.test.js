// The decoder on every build against a float64 forward pass: models of each family, made by the test.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Transformer } from 'attention-wasm/transformer';
import { builds, loadBuild } from './support/builds.js';
import { configs, dependsOnLength, weightsFor } from './support/models.js';
import { transformer as oracle } from './support/oracle-transformer.js';
import { random } from './support/random.js';
import { assertClose, assertSameBits, assertUnchanged, remember } from './support/tensors.js';

/** More than four tokens go through other kernels than few. */
const kLengths = [1, 3, 37];
const kTolerance = { absolute: 1e-5, relative: 1e-5 };

const textOf = (config, length) => {
  const generator = random(length);
  return Array.from({ length }, () => generator.integer(0, config.vocab_size - 1));
};
const flat = (rows) => Float64Array.from(rows.flat(9));

/** Answers of the oracle, for all builds. */
const cases = Object.entries(configs).flatMap(([name, config]) =>
  kLengths.map((length) => {
    const tokens = textOf(config, length);
    const weights = weightsFor(config);
    let want;
    return {
      ...{ name: `${name}, ${length} tokens`, config, weights, tokens },
      get want() {
        want ??= oracle(config, weights, tokens);
        return want;
      },
    };
  }),
);

for (const build of builds()) {
  const attention = await loadBuild(build);
  const { allocated } = attention.memory;

  describe(`a decoder against float64, ${build}`, () => {
    for (const { name, config, weights, tokens, ...more } of cases) {
      test(name, async () => {
        const { want } = more;
        const inputs = remember(...Object.values(weights));
        const model = await Transformer.load(attention, { config, weights });
        assertUnchanged(inputs);
        const held = attention.memory.allocated;
        const { vocabulary, width, heads, layers } = model.info;
        const T = tokens.length;
        const got = model.forward(tokens, { logits: 'all', capture: { attention: true, hidden: true } });
        assert.deepEqual(got.logits.shape, [T, vocabulary]);
        assertClose(got.logits.data, flat(want.logits), { ...kTolerance, what: 'logits' });
        assert.equal(got.hidden.length, layers + 1);
        got.hidden.forEach((states, l) => {
          assert.deepEqual(states.shape, [T, width]);
          assertClose(states.data, flat(want.hidden[l]), { ...kTolerance, what: `hidden states ${l}` });
        });
        assert.deepEqual(
          got.attention.map(({ layer }) => layer),
          [...Array(layers).keys()],
        );
        got.attention.forEach(({ weights: captured }, l) => {
          assert.deepEqual(captured.shape, [heads, T, T]);
          assertClose(captured.data, flat(want.attention[l]), { ...kTolerance, what: `attention of layer ${l}` });
        });
        assert.equal(attention.memory.allocated, held);

        const last = model.forward(tokens);
        assert.deepEqual(last.logits.shape, [1, vocabulary]);
        assertClose(last.logits.data, flat(want.logits.slice(-1)), { ...kTolerance, what: 'last logits' });
        if (!dependsOnLength(config)) inParts(model, tokens, flat(want.logits));
        model.dispose();
        assert.equal(attention.memory.allocated, allocated);
      });
    }
  });

  describe(`what a decoder captures and leaves out, ${build}`, () => {
    const config = configs['LLaMA, grouped heads, tied'];
    const weights = weightsFor(config);
    const tokens = textOf(config, 21);

    test('captured weights and states change no bit', async () => {
      const model = await Transformer.load(attention, { config, weights });
      for (const text of [tokens, tokens.slice(0, 1)]) {
        for (const logits of ['last', 'all']) {
          const plain = model.forward(text, { logits });
          assert.deepEqual(Object.keys(plain), ['logits']);
          for (const capture of [
            { attention: true },
            { hidden: true },
            { attention: { layers: [1], heads: [3], rows: [0] }, hidden: true },
          ]) {
            assertSameBits(model.forward(text, { logits, capture }).logits, plain.logits);
            const cache = model.createCache({ capacity: 30 });
            assertSameBits(
              model.forward(text, { logits, capture, cache }).logits,
              model.forward(text, { logits, cache: model.createCache({ capacity: 30 }) }).logits,
            );
          }
        }
      }
      model.dispose();
    });

    test('chosen layers, heads and rows are those of all', async () => {
      const model = await Transformer.load(attention, { config, weights });
      const whole = model.forward(tokens, { capture: { attention: true } }).attention;
      const part = model.forward(tokens, { capture: { attention: { layers: [2, 0], heads: [3, 1], rows: [20, 5] } } });
      assert.deepEqual(
        part.attention.map(({ layer, heads, rows }) => ({ layer, heads, rows })),
        [0, 2].map((layer) => ({ layer, heads: [3, 1], rows: [20, 5] })),
      );
      for (const { layer, heads, rows, weights: got } of part.attention) {
        assert.deepEqual(got.shape, [2, 2, 21]);
        const want = heads.flatMap((h) =>
          rows.flatMap((row) => [...whole[layer].weights.data.subarray((h * 21 + row) * 21, (h * 21 + row + 1) * 21)]),
        );
        assertClose(got.data, want, { absolute: 1e-7 });
      }
      const cache = model.createCache({ capacity: 21 });
      model.forward(tokens.slice(0, 17), { cache });
      const rest = model.forward(tokens.slice(17), { cache, capture: { attention: { heads: [2] } } }).attention;
      rest.forEach(({ weights: got, rows }, l) => {
        assert.deepEqual(rows, [0, 1, 2, 3]);
        assert.deepEqual(got.shape, [1, 4, 21]);
        assertClose(got.data, whole[l].weights.data.subarray((2 * 21 + 17) * 21, 3 * 21 * 21), { absolute: 1e-5 });
      });
      model.dispose();
    });

    test('a head that is switched off says nothing', async () => {
      const model = await Transformer.load(attention, { config, weights });
      assert.deepEqual(model.disabledHeads, []);
      const plain = model.forward(tokens, { logits: 'all' }).logits;
      const disabledHeads = [
        [0, 2],
        [2, 0],
        [2, 3],
      ];
      model.disabledHeads = [[2, 3], ...disabledHeads];
      assert.deepEqual(model.disabledHeads, disabledHeads);
      const want = oracle(config, weights, tokens, { disabledHeads });
      assertClose(model.forward(tokens, { logits: 'all' }).logits.data, flat(want.logits), kTolerance);
      const cache = model.createCache({ capacity: 21 });
      const each = tokens.flatMap((token) => [...model.forward([token], { cache }).logits.data]);
      assertClose(each, flat(want.logits), kTolerance);
      model.disabledHeads = [];
      assertSameBits(model.forward(tokens, { logits: 'all' }).logits, plain);
      model.dispose();
    });

    test('the logit lens of the last states is the logits, of others it is as the oracle says', async () => {
      const model = await Transformer.load(attention, { config, weights });
      const { logits, hidden } = model.forward(tokens, { logits: 'all', capture: { hidden: true } });
      assertSameBits(model.logitLens(hidden[3]), logits);
      const resident = attention.tensor(hidden[3].data, hidden[3].shape);
      assertSameBits(model.logitLens(resident), logits);
      resident.dispose();
      const want = oracle({ ...config, num_hidden_layers: 1 }, weights, tokens);
      const early = model.logitLens({ data: hidden[1].data, shape: [3, 7, 24] });
      assert.deepEqual(early.shape, [3, 7, 37]);
      assertClose(early.data, flat(want.logits), kTolerance);
      model.dispose();
    });
  });
}

/** Token by token, and in chunks, with caches of each type. */
function inParts(model, tokens, want) {
  for (const [dtype, absolute] of [
    ['float32', 2e-5],
    ['float16', 0.02],
  ]) {
    const cache = model.createCache({ capacity: tokens.length, dtype });
    const each = tokens.flatMap((token) => [...model.forward([token], { cache }).logits.data]);
    assert.equal(cache.length, tokens.length);
    assertClose(each, want, { absolute, what: `token by token, ${dtype}` });
    cache.clear();
    const chunks = [];
    for (let at = 0; at < tokens.length; at += 8) {
      chunks.push(...model.forward(tokens.slice(at, at + 8), { cache, logits: 'all' }).logits.data);
    }
    assertClose(chunks, want, { absolute, what: `in chunks, ${dtype}` });
    cache.dispose();
  }
}
