// attention-wasm/worker on the GPU: the results of wasm in the page and of the float64 oracle.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { configs, weightsFor } from '../support/models.js';
import { attention as oracle } from '../support/oracle.js';
import { transformer as transformerOracle } from '../support/oracle-transformer.js';
import { random } from '../support/random.js';
import { assertClose } from '../support/tensors.js';
import { close, testsOnBoth } from './both-backends.js';
import { bringWorker } from './gpu-worker.js';
import { useGpuPage } from './webgpu.js';

const used = useGpuPage();
const onBothTest = testsOnBoth(used);
const config = configs['LLaMA, grouped heads, tied'];
const weights = weightsFor(config);
const kTokens = [3, 1, 4, 1, 5, 9, 2, 6];

describe('beside wasm in the page, and the oracle', () => {
  before(() => used.page.evaluate(bringWorker));

  test('the worker says what came up in it', async () => {
    const { there, here } = await used.page.evaluate(async () => {
      const own = await window.packageEntry.load({ backend: 'webgpu' });
      const infos = { there: window.attention.info, here: own.info };
      own.dispose();
      return infos;
    });
    assert.equal(there.backend, 'webgpu');
    assert.deepEqual(there, here);
  });

  const g = random(41);
  const inputs = { q: g.tensor([2, 4, 9, 16]), k: g.tensor([2, 2, 9, 16]), v: g.tensor([2, 2, 9, 12]) };
  const options = { isCausal: true, softcap: 3, returnLse: true, needWeights: true };

  onBothTest(
    'scaledDotProductAttention, of plain data and of tensors that stay there',
    { ...inputs, options },
    async (attention, { q, k, v, options: given }) => {
      const plain = await attention.scaledDotProductAttention(q, k, v, given);
      const kept = [];
      for (const { data, shape } of [q, k, v]) kept.push(await attention.tensor(data, shape));
      const out = await attention.tensor(null, [2, 4, 9, 12]);
      const { lse } = await attention.scaledDotProductAttention(...kept, { ...given, out });
      const output = { data: await out.read(), shape: out.shape, dtype: out.dtype };
      for (const tensor of [...kept, out]) tensor.dispose();
      return { plain, kept: { output, lse } };
    },
    ({ plain, kept }) => {
      const want = oracle(inputs.q, inputs.k, inputs.v, options);
      for (const name of ['output', 'weights', 'lse']) close(plain[name], want[name], name);
      for (const name of ['output', 'lse']) close(kept[name], want[name], `${name} of tensors`);
    },
  );

  onBothTest(
    'a cache: appended in parts, and attended after each',
    inputs,
    async (attention, { q, k, v }) => {
      /** Tokens from … to of [2, heads, 9, width]. */
      const part = ({ data, shape: [B, H, T, D] }, from, to) => {
        const rows = Array.from({ length: B * H }, (_, n) => data.subarray((n * T + from) * D, (n * T + to) * D));
        return { data: Float32Array.from(rows.flatMap((row) => [...row])), shape: [B, H, to - from, D] };
      };
      const cache = await attention.keyValueCache({
        ...{ batch: 2, numKvHeads: 2, headDim: 16 },
        valueDim: 12,
        capacity: 9,
      });
      const outputs = [];
      const lengths = [];
      for (const [from, to] of [
        [0, 4],
        [4, 5],
        [5, 9],
      ]) {
        await cache.append(part(k, from, to), part(v, from, to));
        outputs.push((await cache.attend(part(q, from, to))).output);
        lengths.push(cache.length);
      }
      const { bytes } = cache;
      await cache.truncate(5);
      lengths.push(cache.length);
      const again = (await cache.attend(part(q, 4, 5))).output;
      cache.dispose();
      return { outputs, again, lengths, bytes };
    },
    ({ outputs, again, lengths }) => {
      const { data: want } = oracle(inputs.q, inputs.k, inputs.v, { isCausal: true }).output;
      const row = (n, t) => want.subarray((n * 9 + t) * 12, (n * 9 + t + 1) * 12);
      let from = 0;
      for (const output of outputs) {
        const rows = output.shape[2];
        for (let n = 0; n < 8; ++n) {
          for (let t = 0; t < rows; ++t) {
            const got = output.data.subarray((n * rows + t) * 12, (n * rows + t + 1) * 12);
            assertClose(got, row(n, from + t), { absolute: 1e-4, what: `head ${n}, token ${from + t}` });
          }
        }
        from += rows;
      }
      assert.deepEqual(again.data, outputs[1].data);
      assert.deepEqual(lengths, [4, 5, 9, 5]);
    },
  );

  onBothTest(
    'a model: passes, its cache, captures, heads that are off, the lens, and what it writes',
    { config, weights, tokens: kTokens },
    async (attention, { config: given, weights: tensors, tokens }) => {
      const model = await window.modelOn(attention, { config: given, weights: tensors });
      const capture = { attention: true, hidden: true };
      const whole = await model.forward(tokens, { logits: 'all', capture });
      const cache = await model.createCache({ capacity: 20 });
      const lengths = [cache.length];
      const first = await model.forward(tokens.slice(0, 5), { cache });
      const snapshot = await cache.snapshot();
      const rest = await model.forward(tokens.slice(5), { cache, logits: 'all' });
      lengths.push(cache.length);
      await cache.restore(snapshot);
      lengths.push(cache.length);
      const written = [];
      const settings = { maxTokens: 6, temperature: 0.9, topK: 12, seed: 5, cache };
      for await (const { token } of model.generate(tokens.slice(5), settings)) written.push(token);
      lengths.push(cache.length);
      const lens = await model.logitLens(whole.hidden[1]);
      const off = [
        [0, 2],
        [2, 1],
      ];
      if (model.disableHeads) await model.disableHeads(off);
      else model.disabledHeads = off;
      const without = await model.forward(tokens);
      const { info, disabledHeads } = model;
      cache.dispose();
      model.dispose();
      return { whole, first, rest, lengths, written, lens, without, info, disabledHeads };
    },
    ({ whole, rest, lengths }) => {
      const want = transformerOracle(config, weights, kTokens);
      const flat = (rows) => Float64Array.from(rows.flat(9));
      const kClose = { absolute: 1e-4, relative: 1e-5 };
      assertClose(whole.logits.data, flat(want.logits), { ...kClose, what: 'logits beside float64' });
      assertClose(rest.logits.data, flat(want.logits.slice(5)), { ...kClose, what: 'by the cache' });
      whole.attention.forEach((captured, l) => {
        assertClose(captured.weights.data, flat(want.attention[l]), { ...kClose, what: `attention of layer ${l}` });
      });
      assert.deepEqual(lengths, [0, 8, 5, 13]);
    },
  );
});
