// Everything of the package beside scaledDotProductAttention on WebGPU: against the float64 oracle where there is one for
// the whole call, and against the wasm backend, whose own tests do that, in every case.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { mergeAttention, varlenAttention } from '../support/oracle.js';
import { linear as linearOracle, multiHeadAttention } from '../support/oracle-layers.js';
import { activations, norms } from '../support/oracle-norms.js';
import { rope as ropeOracle } from '../support/oracle-rope.js';
import { random, seedOf } from '../support/random.js';
import { assertClose, cast, decodeTensor, valuesOf } from '../support/tensors.js';
import { useGpuPage } from './webgpu.js';

const used = useGpuPage();

/** What the formats of the results round. */
const kRounding = { float32: 1e-6, float16: 2 ** -10, bfloat16: 2 ** -7 };

/** Runs `run(attention, inputs)` in the page on both backends. @param {Function} run @param {unknown} inputs */
function onBoth(run, inputs) {
  return used.page.evaluate(
    async ({ source, given }) => {
      window.wasm ??= await window.packageEntry.load({ threads: 1 });
      const call = new Function(`return ${source}`)();
      return { webgpu: await call(window.attention, given), wasm: await call(window.wasm, given) };
    },
    { source: String(run), given: inputs },
  );
}

/** Same form, shapes and types; numbers within 1e-4 and the rounding of their type. */
function assertAlike(got, want, path) {
  if (want?.data && want.shape) {
    assert.equal(got.dtype, want.dtype, path);
    assertClose(got, want, { absolute: 1e-4, relative: kRounding[want.dtype ?? 'float32'], what: path });
  } else if (want && typeof want === 'object' && !ArrayBuffer.isView(want)) {
    assert.deepEqual(Object.keys(got), Object.keys(want), path);
    for (const name of Object.keys(want)) assertAlike(got[name], want[name], `${path}.${name}`);
  } else {
    assert.deepEqual(got, want, path);
  }
}

/**
 * One test: the same call on both backends, and what the oracle says of it.
 * @param {string} name @param {unknown} inputs @param {Function} run @param {(answer: any) => void} [check]
 */
function onBothTest(name, inputs, run, check) {
  test(name, async () => {
    const { webgpu, wasm } = await onBoth(run, inputs);
    assertAlike(webgpu, wasm, 'beside wasm');
    check?.(webgpu);
  });
}

const close = (got, want, what) =>
  assertClose(got, want, { absolute: 1e-4, relative: kRounding[got.dtype], what: `${what} beside the oracle` });

describe('norms and activations, webgpu', () => {
  for (const dtype of ['float32', 'float16', 'bfloat16']) {
    const x = cast(random(3).tensor([3, 5, 70], 3), dtype);
    const exact = { data: Float64Array.from(valuesOf(x)), shape: x.shape };
    const weight = random(4).tensor([70]).data;
    for (const name of ['rmsNorm', 'layerNorm', 'softmax']) {
      const options = name === 'softmax' ? {} : { weight, epsilon: 1e-3 };
      onBothTest(
        `${name}, ${dtype}`,
        { name, x, options },
        (attention, given) => attention[given.name](given.x, given.options),
        (y) => close(y, norms[name](exact, options), name),
      );
    }
    for (const [name, fn, options] of [
      ['silu', 'silu', {}],
      ['gelu', 'gelu', {}],
      ['gelu, tanh', 'gelu', { approximate: 'tanh' }],
    ]) {
      onBothTest(
        `${name}, ${dtype}`,
        { fn, x, options },
        (attention, given) => attention[given.fn](given.x, given.options),
        (y) => close(y, { data: exact.data.map(activations[name]), shape: x.shape }, name),
      );
    }
  }
  onBothTest(
    'softmax of rows with -inf, and of nothing else',
    { data: Float32Array.of(-Infinity, 1, 2, -Infinity, -Infinity, -Infinity), shape: [2, 3] },
    (attention, x) => attention.softmax(x),
    (y) => assert.deepEqual([...y.data.slice(3)], [0, 0, 0]),
  );
  onBothTest(
    'silu far out, with a gate',
    { data: Float32Array.of(-200, -90, -88, -20, 0, 20, 90, 200), shape: [8] },
    (attention, x) => attention.silu(x, { gate: x }),
  );
  onBothTest(
    'layerNorm far from 0',
    {
      data: random(5)
        .tensor([4, 100])
        .data.map((v) => 0.01 * v + 2000),
      shape: [4, 100],
    },
    (attention, x) => attention.layerNorm(x),
  );
});

describe('linear, webgpu', () => {
  for (const [M, N, K] of [
    [1, 33, 70],
    [4, 16, 3],
    [5, 70, 33],
    [150, 40, 65],
    [0, 3, 4],
    [3, 4, 0],
  ]) {
    const g = random(seedOf(`${M} ${N} ${K}`));
    const inputs = {
      x: g.tensor([M, K]),
      weight: g.tensor([N, K]),
      bias: g.tensor([N]).data,
      residual: g.tensor([M, N]),
    };
    onBothTest(
      `[${M}, ${K}] × [${N}, ${K}]ᵀ, plain and packed`,
      inputs,
      async (attention, { x, weight, bias, residual }) => {
        const packed = await attention.packLinear(weight, bias);
        const y = await attention.linear(x, weight, bias);
        const z = await attention.linear(x, packed, null, { residual });
        packed.dispose();
        return { y, z };
      },
      ({ y, z }) => {
        if (K === 0) return;
        const want = linearOracle(inputs.x, inputs.weight, { data: inputs.bias, shape: [N] });
        close(y, want, 'plain');
        close(z, { ...want, data: want.data.map((v, n) => v + inputs.residual.data[n]) }, 'packed, with a residual');
      },
    );
  }
});

describe('rope, webgpu', () => {
  for (const dtype of ['float32', 'float16', 'bfloat16']) {
    for (const style of ['half', 'interleaved']) {
      const x = cast(random(6).tensor([2, 3, 7, 10]), dtype);
      const options = { style, rotaryDim: 8, offset: 131071 };
      onBothTest(
        `${style}, ${dtype}`,
        { x, options },
        (attention, given) => attention.rope(given.x, given.options),
        (y) => close(y, ropeOracle({ data: valuesOf(x), shape: x.shape }, options), 'rope'),
      );
    }
  }
  onBothTest('layout bthd, positions of each item, inverse', random(7).tensor([2, 3, 4, 6]), (attention, x) =>
    attention.rope(x, {
      ...{ style: 'half', layout: 'bthd', inverse: true },
      positions: { data: [1, 5, 9, 2, 8, 100], shape: [2, 3] },
    }),
  );
});

describe('packed sequences and merging, webgpu', () => {
  const g = random(8);
  const [q, k, v] = [g.tensor([20, 4, 8]), g.tensor([25, 2, 8]), g.tensor([25, 2, 6])];
  const bounds = { cuSeqlensQ: Int32Array.of(0, 9, 9, 12, 20), cuSeqlensK: Int32Array.of(0, 3, 5, 19, 25) };
  for (const [name, options] of Object.entries({
    plain: {},
    'causal, weights': { isCausal: 'bottom-right', needWeights: true },
    'ALiBi, sinks': { isCausal: 'top-left', alibiSlopes: true, sinks: Float32Array.of(0, 1, 2, 3) },
  })) {
    onBothTest(
      `varlenAttention: ${name}`,
      { q, k, v, options: { ...bounds, ...options, returnLse: true } },
      (attention, given) => attention.varlenAttention(given.q, given.k, given.v, given.options),
      (answer) => {
        const want = varlenAttention(q, k, v, { ...bounds, ...options });
        close(answer.output, want.output, 'output');
        assertClose(answer.lse, want.lse, { absolute: 1e-4, what: 'lse' });
      },
    );
  }
  onBothTest(
    'varlenAttention: rows so few that ranges of keys are merged',
    { q: { data: q.data.slice(0, 128), shape: [4, 4, 8] }, k: g.tensor([700, 2, 8]), v: g.tensor([700, 2, 6]) },
    (attention, given) =>
      attention.varlenAttention(given.q, given.k, given.v, {
        ...{ cuSeqlensQ: [0, 1, 1, 4], cuSeqlensK: [0, 300, 310, 700], isCausal: 'bottom-right', returnLse: true },
      }),
  );
  const part = (seed) => ({ output: random(seed).tensor([2, 3, 4, 5]), lse: random(seed + 1).tensor([2, 3, 4]) });
  const parts = [part(1), part(3), part(5)];
  parts[1].lse.data.fill(Number.NEGATIVE_INFINITY, 0, 5);
  const sinks = Float32Array.of(1, 2, Number.NEGATIVE_INFINITY);
  onBothTest(
    'mergeAttention, with an empty part and sinks',
    { parts, sinks },
    (attention, given) => attention.mergeAttention(given.parts, { sinks: given.sinks }),
    (answer) => {
      const want = mergeAttention(parts, { sinks });
      close(answer.output, want.output, 'output');
      assertClose(answer.lse, want.lse, { absolute: 1e-4, what: 'lse' });
    },
  );
});

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
