// Whole models on the GPU, beside wasm and the float64 oracle: every family, caches, captures, changes, and the trained
// model of the page.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { configs, dependsOnLength, weightsFor } from '../support/models.js';
import { transformer as oracle } from '../support/oracle-transformer.js';
import { random } from '../support/random.js';
import { shipped } from '../support/shipped-model.js';
import { assertClose } from '../support/tensors.js';
import { testsOnBoth } from './both-backends.js';
import { arrange } from './watched-device.js';
import { useGpuPage } from './webgpu.js';

const used = useGpuPage({ arrange });
const onBothTest = testsOnBoth(used);
const kClose = { absolute: 1e-4, relative: 1e-5 };

const textOf = (config, length) => {
  const generator = random(length);
  return Array.from({ length }, () => generator.integer(0, config.vocab_size - 1));
};
const flat = (rows) => Float64Array.from(rows.flat(9));

describe('every family', () => {
  for (const [name, config] of Object.entries(configs)) {
    const weights = weightsFor(config);
    const tokens = textOf(config, 19);
    onBothTest(
      name,
      { config, weights, tokens, inParts: !dependsOnLength(config) },
      async (attention, { config: given, weights: tensors, tokens: ids, inParts }) => {
        const model = await window.Transformer.load(attention, { config: given, weights: tensors });
        const capture = { attention: true, hidden: true, queries: true, keys: true, values: true };
        const answers = { whole: await model.forward(ids, { logits: 'all', capture }) };
        if (inParts) {
          const cache = await model.createCache({ capacity: ids.length });
          answers.first = (await model.forward(ids.slice(0, 11), { cache, logits: 'all' })).logits;
          answers.rest = await model.forward(ids.slice(11, -1), { cache, capture: { attention: { rows: [1, 0] } } });
          answers.one = await model.forward(ids.slice(-1), { cache, capture: { attention: { heads: [1] } } });
          cache.dispose();
        }
        model.dispose();
        return answers;
      },
      ({ whole, one }) => {
        const want = oracle(config, weights, tokens);
        assertClose(whole.logits.data, flat(want.logits), { ...kClose, what: 'logits beside float64' });
        whole.attention.forEach((captured, l) => {
          assertClose(captured.weights.data, flat(want.attention[l]), { ...kClose, what: `attention of layer ${l}` });
        });
        if (one) assertClose(one.logits.data, flat(want.logits.slice(-1)), { ...kClose, what: 'by the cache' });
      },
    );
  }
});

describe('what a model can be asked', () => {
  const config = configs['LLaMA, grouped heads, tied'];
  const inputs = { config, weights: weightsFor(config), tokens: textOf(config, 21) };

  onBothTest('heads that are off', inputs, async (attention, { config: given, weights, tokens }) => {
    const model = await window.Transformer.load(attention, { config: given, weights });
    const plain = await model.forward(tokens);
    model.disabledHeads = [
      [0, 2],
      [2, 0],
      [2, 3],
    ];
    const off = await model.forward(tokens, { logits: 'all' });
    const cache = await model.createCache({ capacity: 21 });
    await model.forward(tokens.slice(0, 20), { cache });
    const step = await model.forward(tokens.slice(20), { cache });
    model.disabledHeads = [];
    const on = await model.forward(tokens);
    model.dispose();
    return { plain, off, step, on };
  });

  onBothTest('another attention', inputs, async (attention, { config: given, weights, tokens }) => {
    const model = await window.Transformer.load(attention, { config: given, weights });
    const answers = {};
    for (const change of [
      { isCausal: false },
      { scale: 0.7 },
      { temperature: 3 },
      { softcap: 0.4 },
      { windowSize: [3, -1] },
      { rope: false },
      { isCausal: false, temperature: 0.5, softcap: 2, windowSize: [2, 4] },
    ]) {
      const capture = { attention: { layers: [2, 0], heads: [3, 1] } };
      answers[JSON.stringify(change)] = await model.forward(tokens, { attention: change, capture });
    }
    model.dispose();
    return answers;
  });

  onBothTest('the lens', inputs, async (attention, { config: given, weights, tokens }) => {
    const model = await window.Transformer.load(attention, { config: given, weights });
    const { hidden, logits } = await model.forward(tokens, { logits: 'all', capture: { hidden: true } });
    const kept = await attention.tensor(hidden[1].data, hidden[1].shape);
    const half = { data: new Uint16Array(24).fill(0x3c00), shape: [24] };
    const answers = { logits, last: await model.logitLens(hidden[3]), early: await model.logitLens(kept) };
    answers.half = await model.logitLens(half);
    kept.dispose();
    model.dispose();
    return answers;
  });

  onBothTest(
    'writing, with a cache that goes back',
    inputs,
    async (attention, { config: given, weights, tokens }) => {
      const model = await window.Transformer.load(attention, { config: given, weights });
      const cache = await model.createCache({ capacity: 40 });
      const write = async () => {
        const written = [];
        const settings = { maxTokens: 6, temperature: 0.9, topK: 12, seed: 5, cache, capture: { attention: true } };
        for await (const { token, attention: captured } of model.generate(tokens, settings)) {
          written.push(token, captured.at(-1).weights.shape);
        }
        return written;
      };
      await model.forward(tokens.slice(0, 4), { cache });
      const snapshot = await cache.snapshot();
      const first = await write();
      const full = cache.length;
      await cache.restore(snapshot);
      const second = await write();
      await cache.truncate(2);
      const short = await model.forward(tokens.slice(2), { cache });
      await cache.clear();
      const empty = cache.length;
      const free = [];
      for await (const { token } of model.generate(tokens, { maxTokens: 5 })) free.push(token);
      const codes = [];
      for (const wrong of [
        () => model.forward([]),
        () => model.forward([1000]),
        () => model.forward(new Int32Array(60), { cache }),
        () => cache.restore({}),
        () => cache.truncate(1),
        () => model.createCache({ capacity: 0 }),
        () => model.logitLens({ data: new Float32Array(3), shape: [3] }),
      ]) {
        codes.push(await window.outcome((async () => wrong())()));
      }
      model.dispose();
      codes.push(await window.outcome((async () => model.forward(tokens))()));
      return { first, full, second, short, empty, free, codes };
    },
    ({ first, second, full, empty, codes }) => {
      assert.deepEqual([second, full, empty], [first, 30, 0]);
      assert.deepEqual(codes, [
        ...['INVALID_SHAPE', 'INVALID_OPTION', 'CAPACITY', 'INVALID_OPTION', 'INVALID_OPTION', 'INVALID_OPTION'],
        ...['INVALID_SHAPE', 'DISPOSED'],
      ]);
    },
  );

  onBothTest(
    'weights in float16 and on the device, GPT-2 with turned ones',
    {
      llama: { config, weights: weightsFor(config, { dtype: 'float16' }) },
      untied: {
        config: configs['Mistral, a window'],
        weights: weightsFor(configs['Mistral, a window'], { dtype: 'bfloat16' }),
      },
      gpt2: { config: configs['GPT-2'], weights: weightsFor(configs['GPT-2'], { dtype: 'float16' }) },
    },
    async (attention, models) => {
      const answers = {};
      for (const [name, { config: given, weights }] of Object.entries(models)) {
        const kept = {};
        for (const [each, { data, shape, dtype }] of Object.entries(weights)) {
          kept[each] = await attention.tensor(data, shape, dtype);
        }
        for (const [from, source] of Object.entries({ plain: weights, kept })) {
          const model = await window.Transformer.load(attention, { config: given, weights: source });
          answers[`${name} ${from}`] = await model.forward([3, 1, 4, 1, 5, 9]);
          model.dispose();
        }
        for (const tensor of Object.values(kept)) tensor.dispose();
      }
      return answers;
    },
  );
});

describe('the trained model', () => {
  before(async () => {
    await used.page.evaluate(async (config) => {
      const weights = new Uint8Array(await (await fetch('/web/model/model.safetensors')).arrayBuffer());
      window.wasm ??= await window.packageEntry.load({ threads: 1 });
      const { load } = window.Transformer;
      window.trained = {
        webgpu: await load(window.attention, { config, weights }),
        wasm: await load(window.wasm, { config, weights }),
      };
    }, shipped.config);
  });

  for (const { name, ids, last_logits: last, attention: rows } of shipped.golden.prompts) {
    test(`golden: ${name}`, async () => {
      const { webgpu, wasm } = await used.page.evaluate(async (tokens) => {
        const answers = {};
        for (const [backend, model] of Object.entries(window.trained)) {
          answers[backend] = await model.forward(tokens, { capture: { attention: true } });
        }
        return answers;
      }, ids);
      const T = ids.length;
      assertClose(webgpu.logits.data, last.all, { absolute: 1e-3, what: 'logits beside the golden ones' });
      assertClose(webgpu.logits.data, wasm.logits.data, { absolute: 1e-4, what: 'logits beside wasm' });
      for (const [l, { weights }] of webgpu.attention.entries()) {
        assertClose(weights.data, wasm.attention[l].weights.data, { absolute: 1e-4, what: `attention of layer ${l}` });
        for (const { position, rows: layers } of rows) {
          for (const [h, want] of layers[l].entries()) {
            const at = (h * T + position) * T;
            const got = weights.data.subarray(at, at + position + 1);
            assertClose(got, want, { absolute: 1e-3, what: `attention of L${l}H${h} at ${position}` });
          }
        }
      }
    });
  }
});

describe('a device and a model', () => {
  const config = configs['LLaMA, grouped heads, tied'];
  const inputs = { config, weights: weightsFor(config) };

  test('a pass reads back what it returns alone, makes no buffer anew, and gives everything back', async () => {
    const { reads, submits, first, last, held } = await used.page.evaluate(async ({ config: given, weights }) => {
      const { device, seen } = await window.watchedDevice();
      const attention = await window.packageEntry.load({ backend: 'webgpu', device });
      const before = attention.memory.allocated;
      const model = await window.Transformer.load(attention, { config: given, weights });
      const cache = await model.createCache({ capacity: 64 });
      const forward = () => model.forward([1, 2, 3, 4, 5, 6, 7], { cache });
      await forward();
      await cache.clear();
      await forward();
      await cache.clear();
      const [made, readSoFar, submitted] = [seen.created, seen.reads, seen.submits];
      await forward();
      const counts = { reads: seen.reads - readSoFar, submits: seen.submits - submitted };
      for (let n = 0; n < 200; ++n) {
        await cache.clear();
        await forward();
      }
      const created = seen.created;
      cache.dispose();
      model.dispose();
      const left = attention.memory.allocated - before;
      attention.dispose();
      device.destroy();
      return { ...counts, first: made, last: created, held: [left, seen.live] };
    }, inputs);
    assert.deepEqual({ reads, submits }, { reads: 1, submits: 1 });
    assert.equal(last, first);
    assert.deepEqual(held, [2 ** 16, 0]); // the buffer of small data stays with the instance
  });

  test('F-095: a model whose parts are beyond the binding limit', async () => {
    const most = 2560;
    const tokens = textOf(config, 20);
    const { bound, webgpu, wasm } = await used.page.evaluate(
      async ({ config: given, weights, ids, limit }) => {
        const { device, seen } = await window.watchedDevice({ maxStorageBufferBindingSize: limit });
        const attention = await window.packageEntry.load({ backend: 'webgpu', device });
        window.wasm ??= await window.packageEntry.load({ threads: 1 });
        const run = async (on) => {
          const model = await window.Transformer.load(on, { config: given, weights });
          model.disabledHeads = [[1, 2]];
          const cache = await model.createCache({ capacity: 20 });
          const capture = { hidden: true, queries: true };
          const first = await model.forward(ids.slice(0, 8), { cache, logits: 'all', capture });
          await model.forward(ids.slice(8, 15), { cache });
          return { first, last: await model.forward(ids.slice(15), { cache }) };
        };
        const answers = { webgpu: await run(attention), wasm: await run(window.wasm), bound: seen.bound };
        attention.dispose();
        device.destroy();
        return answers;
      },
      { ...inputs, ids: tokens, limit: most },
    );
    assert.ok(bound <= most, `bound ${bound} bytes at once`);
    assertClose(webgpu.last.logits, wasm.last.logits, kClose);
    assertClose(webgpu.first.logits, wasm.first.logits, kClose);
    for (const name of ['hidden', 'queries']) {
      webgpu.first[name].forEach((got, l) => {
        assertClose(got, wasm.first[name][l], { ...kClose, what: `${name} ${l}` });
      });
    }
  });

  test('F-099: a device that goes away during a pass; a model made anew runs on another one', async () => {
    const state = await used.page.evaluate(async ({ config: given, weights }) => {
      const attention = await window.packageEntry.load({ backend: 'webgpu' });
      const { load } = window.Transformer;
      const model = await load(attention, { config: given, weights });
      const cache = await model.createCache({ capacity: 8 });
      await model.forward([1, 2], { cache });
      const pending = model.forward([3], { cache });
      const during = cache.length;
      attention.device.destroy();
      const codes = [await window.outcome(pending), await window.outcome(model.forward([1]))];
      const lengths = [during, cache.length];
      const again = await load(attention, { config: given, weights });
      codes.push(await window.outcome(again.forward([1])));
      model.dispose();
      attention.dispose();
      return { codes, lengths };
    }, inputs);
    assert.deepEqual(state, { codes: ['DEVICE_LOST', 'DEVICE_LOST', 'done'], lengths: [3, 2] });
  });
});
