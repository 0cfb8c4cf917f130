// Writing token by token: the choice of tokens, the cache, the stream and its end.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AttentionError } from 'attention-wasm';
import { Transformer, TransformerCache } from 'attention-wasm/transformer';
import { builds, loadBuild } from './support/builds.js';
import { configs, weightsFor } from './support/models.js';
import { random } from './support/random.js';
import { assertClose, assertSameBits } from './support/tensors.js';

const config = configs['LLaMA, grouped heads, tied'];
const weights = weightsFor(config);
const prompt = [3, 14, 15, 9, 2, 6];

async function collect(stream) {
  const steps = [];
  for await (const step of stream) steps.push(step);
  return steps;
}
const tokensOf = (steps) => steps.map(({ token }) => token);
const fails = (code) => (error) => error instanceof AttentionError && error.code === code;

/** One draw as the documentation says, with everything sorted. */
function drawn(logits, { temperature, topK = logits.length, topP = 1, u }) {
  const most = Math.max(...logits);
  const all = [...logits].map((logit, token) => ({ token, p: Math.exp((logit - most) / temperature) }));
  const isWhole = topK >= logits.length && topP === 1;
  const sorted = isWhole ? all : all.sort((a, b) => b.p - a.p || a.token - b.token);
  const first = sorted.slice(0, topK);
  const sum = (list) => list.reduce((total, { p }) => total + p, 0);
  const enough = first.findIndex((_, i) => sum(first.slice(0, i + 1)) >= topP * sum(first) * (1 - 1e-12));
  const kept = topP < 1 ? first.slice(0, enough + 1) : first;
  const aim = u * sum(kept);
  return kept[kept.findIndex((_, i) => sum(kept.slice(0, i + 1)) > aim)].token;
}

for (const build of builds()) {
  describe(`generate, ${build}`, async () => {
    const attention = await loadBuild(build);
    const model = await Transformer.load(attention, { config, weights });
    const { allocated } = attention.memory;

    test('without a temperature the largest logit wins, and the logits are those of the text so far', async () => {
      const steps = await collect(model.generate(prompt, { maxTokens: 12 }));
      assert.equal(steps.length, 12);
      const text = [...prompt];
      for (const { token, logits } of steps) {
        assert.deepEqual(logits.shape, [1, config.vocab_size]);
        assertClose(logits, model.forward(text).logits, { absolute: 1e-5 });
        assert.equal(token, logits.data.indexOf(Math.max(...logits.data)));
        text.push(token);
      }
      assert.equal(attention.memory.allocated, allocated);
    });

    const samplings = [
      { temperature: 1 },
      { temperature: 0.3, topK: 5 },
      { temperature: 2, topP: 0.6 },
      { temperature: 1.3, topK: 12, topP: 0.8 },
      { temperature: 1, topK: 1 },
      { temperature: 1, topP: 1e-9 },
      { temperature: 1, topK: 1000, topP: 1 },
    ];
    for (const sampling of samplings) {
      test(`a draw a token, as documented: ${JSON.stringify(sampling)}`, async () => {
        const options = { maxTokens: 40, seed: 77, ...sampling };
        const steps = await collect(model.generate(prompt, options));
        const { uniform } = random(77);
        for (const { token, logits } of steps) assert.equal(token, drawn(logits.data, { ...sampling, u: uniform() }));
        assert.deepEqual(tokensOf(await collect(model.generate(prompt, options))), tokensOf(steps));
      });
    }

    test('the seed decides; without one each run is another', async () => {
      const run = async (seed) =>
        tokensOf(await collect(model.generate(prompt, { maxTokens: 40, temperature: 2, seed })));
      assert.notDeepEqual(await run(1), await run(2));
      assert.notDeepEqual(await run(), await run());
      assert.deepEqual(await run(2 ** 32 - 1), await run(2 ** 32 - 1));
    });

    test('onToken hears of each token before the stream gives it', async () => {
      const heard = [];
      for await (const step of model.generate(prompt, { maxTokens: 5, onToken: (each) => heard.push(each) })) {
        assert.equal(heard.at(-1), step);
      }
      assert.equal(heard.length, 5);
      const stream = model.generate(prompt, {
        maxTokens: 5,
        onToken: () => {
          throw new RangeError('mine');
        },
      });
      await assert.rejects(collect(stream), RangeError);
      assert.equal(attention.memory.allocated, allocated);
    });

    test('a cache goes on where it stands', async () => {
      const whole = tokensOf(await collect(model.generate(prompt, { maxTokens: 10 })));
      const cache = model.createCache({ capacity: 20 });
      assert(cache instanceof TransformerCache);
      model.forward(prompt.slice(0, 4), { cache });
      const first = tokensOf(await collect(model.generate(prompt.slice(4), { maxTokens: 4, cache })));
      assert.equal(cache.length, prompt.length + 3);
      const rest = tokensOf(await collect(model.generate(first.slice(-1), { maxTokens: 6, cache })));
      assert.deepEqual([...first, ...rest], whole);
      cache.truncate(prompt.length);
      const again = tokensOf(await collect(model.generate(first.slice(0, 1), { maxTokens: 9, cache })));
      assert.deepEqual([first[0], ...again], whole);
      cache.dispose();
      assert.equal(attention.memory.allocated, allocated);
    });

    test('the cache can be copied and brought back', () => {
      const cache = model.createCache({ capacity: 9, dtype: 'float16' });
      assert.deepEqual([cache.capacity, cache.dtype, cache.length], [9, 'float16', 0]);
      const { info } = model;
      assert.equal(cache.bytes, info.layers * 2 * info.kvHeads * info.headDim * 9 * 2);
      model.forward(prompt, { cache });
      const snapshot = cache.snapshot();
      const { logits } = model.forward([5], { cache });
      cache.clear();
      model.forward([7, 7], { cache });
      cache.restore(snapshot);
      assert.equal(cache.length, prompt.length);
      assertSameBits(model.forward([5], { cache }).logits, logits);
      cache.dispose();
      cache[Symbol.dispose ?? 'dispose']();
      assert.equal(cache.disposed, true);
      assert.throws(() => cache.length, fails('DISPOSED'));
    });

    test('the stream ends behind a stop token, of the call or of the config', async () => {
      const whole = tokensOf(await collect(model.generate(prompt, { maxTokens: 12 })));
      const stop = whole[4];
      const until = whole.slice(0, whole.indexOf(stop) + 1);
      assert.deepEqual(tokensOf(await collect(model.generate(prompt, { maxTokens: 12, stopTokens: [stop] }))), until);
      for (const eos_token_id of [stop, [stop]]) {
        const other = await Transformer.load(attention, { config: { ...config, eos_token_id }, weights });
        assert.deepEqual(tokensOf(await collect(other.generate(prompt, { maxTokens: 12 }))), until);
        assert.deepEqual(tokensOf(await collect(other.generate(prompt, { maxTokens: 12, stopTokens: [] }))), whole);
        other.dispose();
      }
      assert.deepEqual(await collect(model.generate(prompt, { maxTokens: 0 })), []);
    });

    test('leaving the stream gives its memory back', async () => {
      for await (const step of model.generate(prompt, { maxTokens: 100 })) {
        assert(attention.memory.allocated > allocated);
        if (step.token >= 0) break;
      }
      assert.equal(attention.memory.allocated, allocated);
    });

    test('a signal ends the stream, and the cache stays good', async () => {
      const cache = model.createCache({ capacity: 50 });
      const controller = new AbortController();
      const got = [];
      const stream = model.generate(prompt, { maxTokens: 40, cache, signal: controller.signal });
      await assert.rejects(
        async () => {
          for await (const { token } of stream) {
            got.push(token);
            if (got.length === 3) controller.abort(new Error('enough'));
          }
        },
        (error) => fails('ABORTED')(error) && /generate: signal must not be aborted, got enough/.test(error.message),
      );
      assert.equal(got.length, 3);
      assert.equal(cache.length, prompt.length + 2);
      const rest = tokensOf(await collect(model.generate(got.slice(-1), { maxTokens: 4, cache })));
      assert.deepEqual([...got, ...rest], tokensOf(await collect(model.generate(prompt, { maxTokens: 7 }))));
      cache.dispose();
      assert.equal(attention.memory.allocated, allocated);
    });

    test('a timer can abort: the stream lets the event loop run', async () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 1);
      const stream = model.generate(prompt, { maxTokens: 100_000, signal: controller.signal });
      await assert.rejects(collect(stream), fails('ABORTED'));
      assert.equal(attention.memory.allocated, allocated);
    });
  });
}
