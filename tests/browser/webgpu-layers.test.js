// The multi-head layer and the key/value cache on WebGPU: against PyTorch, the float64 oracle and the wasm backend.
import { readdirSync, readFileSync } from 'node:fs';
import { describe } from 'node:test';
import { multiHeadAttention } from '../support/oracle-layers.js';
import { random } from '../support/random.js';
import { assertClose, decodeTensor } from '../support/tensors.js';
import { close, testsOnBoth } from './both-backends.js';
import { useGpuPage } from './webgpu.js';

const onBothTest = testsOnBoth(useGpuPage());

describe('the multi-head layer, webgpu', () => {
  const folder = new URL('../golden/', import.meta.url);
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
    const golden = JSON.parse(readFileSync(new URL(file, folder), 'utf8'));
    const decoded = (tensors) =>
      Object.fromEntries(Object.entries(tensors).map(([name, t]) => [name, decodeTensor(t)]));
    const config = {
      ...{ dModel: golden.d_model, numHeads: golden.n_heads, isCausal: true },
      ...(golden.rope && { rope: { style: golden.rope, base: golden.rope_base } }),
    };
    onBothTest(
      `as PyTorch: ${file}`,
      { config, state: decoded(golden.state_dict), x: decodeTensor(golden.x) },
      async (attention, { config, state, x }) => {
        const layer = await attention.multiHeadAttention(config);
        await layer.loadStateDict(state);
        const answer = await layer.forward(x, { needWeights: true });
        layer.dispose();
        return answer;
      },
      ({ output, weights }) => {
        close(output, decodeTensor(golden.output), 'output');
        close(weights, decodeTensor(golden.attention_weights), 'weights');
      },
    );
  }

  const g = random(9);
  const [hd, kv] = [6, 2];
  const config = {
    ...{ dModel: 16, numHeads: 4, numKvHeads: kv, headDim: hd, bias: true, qkNorm: true, isCausal: true },
    rope: { style: 'half' },
  };
  const state = {
    in_proj_weight: g.tensor([(4 + 2 * kv) * hd, 16], 0.4),
    in_proj_bias: g.tensor([(4 + 2 * kv) * hd]),
    'out_proj.weight': g.tensor([16, 4 * hd]),
    'out_proj.bias': g.tensor([16]),
    'q_norm.weight': g.tensor([hd]),
    'k_norm.weight': g.tensor([hd]),
  };
  const x = g.tensor([2, 9, 16]);
  onBothTest(
    'norms, biases, packed projections, grouped heads; token by token through a cache as at once',
    { config, state, x },
    async (attention, given) => {
      const layer = await attention.multiHeadAttention(given.config);
      await layer.loadStateDict(given.state);
      const whole = await layer.forward(given.x);
      const cache = await attention.keyValueCache({ batch: 2, numKvHeads: 2, headDim: 6, capacity: 16 });
      const steps = [];
      for (const [at, end] of [
        [0, 4],
        [4, 5],
        [5, 9],
      ]) {
        const data = new Float32Array(2 * (end - at) * 16);
        for (let b = 0; b < 2; ++b)
          data.set(given.x.data.subarray((b * 9 + at) * 16, (b * 9 + end) * 16), b * (end - at) * 16);
        steps.push((await layer.forward({ data, shape: [2, end - at, 16] }, { cache })).output);
      }
      const dict = await layer.stateDict();
      layer.dispose();
      cache.dispose();
      return { whole, steps, dict };
    },
    ({ whole, steps }) => {
      const rows = (tensor, b, at, end) =>
        tensor.data.slice((b * tensor.shape[1] + at) * 16, (b * tensor.shape[1] + end) * 16);
      let at = 0;
      for (const step of steps) {
        const end = at + step.shape[1];
        for (let b = 0; b < 2; ++b)
          assertClose(rows(step, b, 0, end - at), rows(whole.output, b, at, end), { absolute: 1e-4 });
        at = end;
      }
      const separate = {
        ...Object.fromEntries(
          [
            ['q', 0, 24],
            ['k', 24, 36],
            ['v', 36, 48],
          ].flatMap(([name, from, to]) => [
            [
              `${name}_proj.weight`,
              { data: state.in_proj_weight.data.slice(from * 16, to * 16), shape: [to - from, 16] },
            ],
            [`${name}_proj.bias`, { data: state.in_proj_bias.data.slice(from, to), shape: [to - from] }],
          ]),
        ),
        ...state,
      };
      close(whole.output, multiHeadAttention(config, separate, x).output, 'output');
    },
  );
});

describe('the key/value cache, webgpu', () => {
  for (const dtype of ['float32', 'float16', 'bfloat16']) {
    for (const window of [null, 6]) {
      const g = random(10);
      const chunks = [3, 1, 4, 1, 1, ...(window ? [1, 1, 1, 1, 1, 1] : [])].map((T) => ({
        k: g.tensor([2, 2, T, 6]),
        v: g.tensor([2, 2, T, 5]),
        q: g.tensor([2, 4, 1, 6]),
      }));
      const options = { batch: 2, numKvHeads: 2, headDim: 6, valueDim: 5, capacity: 12, dtype };
      onBothTest(
        `${dtype}${window ? ', a ring with kept first tokens' : ''}: append, attend, truncate, snapshot, restore`,
        { chunks, options: { ...options, ...(window && { window, sinkTokens: 2 }) }, last: g.tensor([2, 4, 3, 6]) },
        async (attention, given) => {
          const cache = await attention.keyValueCache(given.options);
          const steps = [];
          for (const { k, v, q } of given.chunks) {
            await cache.append(k, v);
            steps.push(await cache.attend(q, { alibiSlopes: true, returnLse: true, needWeights: true }));
          }
          const taken = await cache.snapshot();
          const lengths = [...cache.lengths];
          if (!given.options.window) {
            await cache.truncate([5, 2]);
            steps.push(await cache.attend(given.last, { isCausal: false }));
          }
          await cache.clear();
          await cache.restore(taken);
          steps.push(await cache.attend(given.chunks[0].q, { needWeights: 'mean' }));
          cache.dispose();
          return { steps, lengths };
        },
      );
    }
  }

  onBothTest('no room: CAPACITY, and nothing has changed', random(11).tensor([1, 1, 3, 4]), async (attention, x) => {
    const cache = await attention.keyValueCache({ numKvHeads: 1, headDim: 4, capacity: 4 });
    await cache.append(x, x);
    let code = '';
    try {
      await cache.append(x, x);
    } catch (error) {
      code = error.code;
    }
    const answer = await cache.attend(x);
    const { length } = cache;
    cache.dispose();
    return { code, length, answer };
  });
});
