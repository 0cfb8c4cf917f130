// Functions of the package beside scaledDotProductAttention on WebGPU: against the float64 oracle where there is one for the
// whole call, and against the wasm backend in every case.
import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { mergeAttention, varlenAttention } from '../support/oracle.js';
import { linear as linearOracle } from '../support/oracle-layers.js';
import { activations, norms } from '../support/oracle-norms.js';
import { rope as ropeOracle } from '../support/oracle-rope.js';
import { random, seedOf } from '../support/random.js';
import { assertClose, cast, valuesOf } from '../support/tensors.js';
import { close, testsOnBoth } from './both-backends.js';
import { useGpuPage } from './webgpu.js';

const onBothTest = testsOnBoth(useGpuPage());

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

describe('ONNX operators, webgpu', () => {
  const g = random(12);
  const inputs = { Q: g.tensor([2, 4, 5, 8]), K: g.tensor([2, 2, 7, 8]), V: g.tensor([2, 2, 7, 6]) };
  onBothTest('Attention and RotaryEmbedding', inputs, async (attention, given) => {
    const { onnxAttention, onnxRotaryEmbedding } = await import('/dist/onnx.js');
    const { Y, qk_matmul_output } = await onnxAttention(
      attention,
      { ...given, attn_mask: { data: new Float32Array(35).fill(0.5), shape: [5, 7] } },
      { softcap: 2, qk_matmul_output_mode: 3 },
    );
    const caches = { cos_cache: new Float32Array(20).fill(0.6), sin_cache: new Float32Array(20).fill(0.8) };
    const rotated = await onnxRotaryEmbedding(attention, {
      X: given.Q,
      cos_cache: { data: caches.cos_cache, shape: [5, 4] },
      sin_cache: { data: caches.sin_cache, shape: [5, 4] },
      position_ids: { data: [0, 1, 2, 3, 4, 4, 3, 2, 1, 0], shape: [2, 5] },
    });
    return { Y, weights: qk_matmul_output, rotated: rotated.Y };
  });
});
