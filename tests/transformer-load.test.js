// Loading a decoder: the forms that weights come in, progress, abort, disposal.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AttentionError } from 'attention-wasm';
import { Transformer } from 'attention-wasm/transformer';
import { builds, loadBuild } from './support/builds.js';
import { configs, weightsFor } from './support/models.js';
import { transformer as oracle } from './support/oracle-transformer.js';
import { safetensorsOf } from './support/safetensors.js';
import { assertClose, assertSameBits } from './support/tensors.js';

const llama = configs['LLaMA, all biases, untied, own head size'];
const tied = configs['LLaMA, grouped heads, tied'];
const gpt2 = configs['GPT-2'];
const tokens = [1, 20, 3, 3, 17, 30];
const fails = (code, message) => (error) =>
  error instanceof AttentionError && error.code === code && message.test(error.message);

const rename = (weights, change) =>
  Object.fromEntries(Object.entries(weights).map(([name, tensor]) => [change(name), tensor]));

/** Some names in one part, some in the other. */
function halves(weights) {
  const entries = Object.entries(weights);
  const pick = (rest) => Object.fromEntries(entries.filter((_, n) => n % 2 === rest));
  return [pick(0), pick(1)];
}

for (const build of builds()) {
  describe(`loading a decoder, ${build}`, async () => {
    const attention = await loadBuild(build);
    const { allocated } = attention.memory;

    /** The logits of a model, which then is gone. */
    async function logitsOf(config, weights) {
      const model = await Transformer.load(attention, { config, weights });
      const { logits } = model.forward(tokens, { logits: 'all' });
      model.dispose();
      assert.equal(attention.memory.allocated, allocated);
      return logits;
    }

    for (const [name, config] of Object.entries({ llama, tied, gpt2 })) {
      test(`the same from tensors, files, several files, and with short names: ${name}`, async () => {
        const weights = weightsFor(config);
        const want = await logitsOf(config, weights);
        const file = safetensorsOf(weights);
        const [first, second] = halves(weights);
        const shifted = new Uint8Array(file.length + 1);
        shifted.set(file, 1);
        for (const form of [
          file,
          file.buffer,
          new DataView(file.buffer),
          shifted.subarray(1),
          [first, second],
          [safetensorsOf(second), safetensorsOf(first)],
          [first, safetensorsOf(second)],
          rename(weights, (each) => each.replace(/^(model|transformer)\./, '')),
        ]) {
          assertSameBits(await logitsOf(config, form), want);
        }
      });

      for (const dtype of ['float16', 'bfloat16']) {
        test(`weights of ${dtype}: ${name}`, async () => {
          const weights = weightsFor(config, { dtype });
          const logits = await logitsOf(config, weights);
          const want = oracle(config, weights, tokens).logits.flat();
          assertClose(logits.data, want, { absolute: 1e-5, relative: 1e-5 });
          assertSameBits(await logitsOf(config, safetensorsOf(weights)), logits);
        });
      }
    }

    test('weights that stand in memory already are read there, and stay', async () => {
      for (const config of [llama, gpt2]) {
        for (const dtype of ['float32', 'bfloat16']) {
          const weights = weightsFor(config, { dtype });
          const want = await logitsOf(config, weights);
          const residents = Object.entries(weights).map(([name, { data, shape }]) => [
            name,
            attention.tensor(data, shape, dtype),
          ]);
          const model = await Transformer.load(attention, { config, weights: Object.fromEntries(residents) });
          for (const [, resident] of residents) resident.dispose();
          assertSameBits(model.forward(tokens, { logits: 'all' }).logits, want);
          model.dispose();
        }
      }
      assert.equal(attention.memory.allocated, allocated);
    });

    test('tensors that nothing needs are passed over, whatever they are', async () => {
      const mask = { data: new Uint8Array(64), shape: [1, 1, 8, 8], dtype: 'BOOL' };
      const value = { data: Float32Array.of(-1e4), shape: [] };
      const weights = weightsFor(gpt2);
      const more = {
        'transformer.h.0.attn.bias': mask,
        'transformer.h.2.attn.masked_bias': value,
        'lm_head.weight': weights['transformer.wte.weight'],
      };
      const want = await logitsOf(gpt2, weights);
      assertSameBits(await logitsOf(gpt2, safetensorsOf({ ...weights, ...more })), want);
      const frequencies = { data: new Float32Array(3), shape: [3] };
      const others = {
        'model.layers.1.self_attn.rotary_emb.inv_freq': frequencies,
        'rotary_emb.inv_freq': frequencies,
      };
      const llamaWeights = weightsFor(llama);
      assertSameBits(await logitsOf(llama, { ...llamaWeights, ...others }), await logitsOf(llama, llamaWeights));
    });

    test('what the config leaves out is as Hugging Face has it', async () => {
      const full = { ...llama, ...{ hidden_act: 'silu', rms_norm_eps: 1e-6, rope_theta: 10000 } };
      const { hidden_act, rms_norm_eps, rope_theta, ...rest } = full;
      assert.deepEqual([hidden_act, rms_norm_eps, rope_theta], ['silu', 1e-6, 10000]);
      const weights = weightsFor(full);
      assertSameBits(await logitsOf(rest, weights), await logitsOf(full, weights));
      const { activation_function, layer_norm_epsilon, n_inner, ...small } = gpt2;
      assert.deepEqual([activation_function, layer_norm_epsilon, n_inner], ['gelu_new', 1e-5, null]);
      assertSameBits(await logitsOf(small, weightsFor(gpt2)), await logitsOf(gpt2, weightsFor(gpt2)));
      const { num_key_value_heads: _, ...whole } = { ...tied, num_key_value_heads: 4 };
      const wide = weightsFor({ ...tied, num_key_value_heads: 4 });
      assertSameBits(await logitsOf(whole, wide), await logitsOf({ ...tied, num_key_value_heads: 4 }, wide));
    });

    test('sizes are told', async () => {
      const model = await Transformer.load(attention, { config: llama, weights: weightsFor(llama) });
      assert.deepEqual(model.info, {
        ...{ modelType: 'llama', vocabulary: 37, width: 24, layers: 3, inner: 20, heads: 4, kvHeads: 2, headDim: 10 },
        ...{ trainedLength: 64, positions: null },
        attention: Array(3).fill({ scale: 1 / Math.sqrt(10), windowSize: [-1, -1] }),
        parameters: Object.values(weightsFor(llama)).reduce((sum, { data }) => sum + data.length, 0),
      });
      model.dispose();
      const other = await Transformer.load(attention, { config: gpt2, weights: weightsFor(gpt2) });
      assert.deepEqual([other.info.positions, other.info.trainedLength], [50, 50]);
      other.dispose();
    });

    test('progress counts the bytes of every tensor', async () => {
      const weights = weightsFor(llama, { dtype: 'float16' });
      const seen = [];
      const model = await Transformer.load(attention, {
        config: llama,
        weights,
        onProgress: (step) => seen.push(step),
      });
      const total = Object.values(weights).reduce((sum, { data }) => sum + data.byteLength, 0);
      assert.deepEqual(seen.map(({ name }) => name).sort(), Object.keys(weights).sort());
      let loaded = 0;
      for (const step of seen) {
        loaded += weights[step.name].data.byteLength;
        assert.deepEqual([step.loaded, step.total], [loaded, total]);
      }
      assert.equal(loaded, total);
      model.dispose();
    });

    test('a signal ends loading, at once or on the way, and nothing stays', async () => {
      const weights = weightsFor(llama);
      const aborted = AbortSignal.abort();
      await assert.rejects(
        Transformer.load(attention, { config: llama, weights, signal: aborted }),
        fails('ABORTED', /load: signal must not be aborted, got/),
      );
      const controller = new AbortController();
      let count = 0;
      const onProgress = () => {
        if (++count === 9) controller.abort('stop');
      };
      await assert.rejects(
        Transformer.load(attention, { config: llama, weights, onProgress, signal: controller.signal }),
        fails('ABORTED', /got stop$/),
      );
      assert.equal(count, 9);
      assert.equal(attention.memory.allocated, allocated);
    });

    test('an error of the listener ends loading, and nothing stays', async () => {
      const onProgress = ({ name }) => {
        if (name.includes('layers.1')) throw new RangeError('mine');
      };
      await assert.rejects(
        Transformer.load(attention, { config: llama, weights: weightsFor(llama), onProgress }),
        RangeError,
      );
      assert.equal(attention.memory.allocated, allocated);
    });

    test('an instance that goes on the way', async () => {
      const other = await loadBuild(build);
      const onProgress = ({ name }) => {
        if (name.includes('layers.1')) other.dispose();
      };
      await assert.rejects(
        Transformer.load(other, { config: llama, weights: weightsFor(llama), onProgress }),
        fails('DISPOSED', /load: attention must not be used after dispose/),
      );
    });

    test('dispose gives the memory back; twice is harmless; use after it throws', async () => {
      const model = await Transformer.load(attention, { config: llama, weights: weightsFor(llama) });
      const cache = model.createCache({ capacity: 4 });
      assert(attention.memory.allocated > allocated);
      assert.equal(model.disposed, false);
      model.dispose();
      model.dispose();
      assert.equal(model.disposed, true);
      for (const [name, use] of Object.entries({
        forward: () => model.forward(tokens, { cache }),
        createCache: () => model.createCache({ capacity: 4 }),
        generate: () => model.generate(tokens, { maxTokens: 1 }),
        disabledHeads: () => {
          model.disabledHeads = [];
        },
        logitLens: () => model.logitLens({ data: new Float32Array(24), shape: [24] }),
      })) {
        assert.throws(use, fails('DISPOSED', new RegExp(`^Transformer.${name}: the model must not be used after`)));
      }
      cache.dispose();
      assert.equal(attention.memory.allocated, allocated);
    });
  });
}
