// linear, packed linear and the multi-head layer on every build against the oracle.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { multiHeadAttention as layerOracle, linear as linearOracle } from './support/oracle-layers.js';
import { random, seedOf } from './support/random.js';
import { assertClose, assertSameBits, assertUnchanged, cast, remember, slice } from './support/tensors.js';

const kEdges = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 65];

/** float32 sums of K products lie within this of the exact ones. */
const tolerance = (K) => ({ absolute: 1e-6 * Math.sqrt(K) * 4 });

const layers = {
  plain: { config: { dModel: 12, numHeads: 3 } },
  'causal with bias': { config: { dModel: 20, numHeads: 5, bias: true, isCausal: true } },
  'grouped heads': { config: { dModel: 24, numHeads: 6, numKvHeads: 2, isCausal: true } },
  'own head size': { config: { dModel: 12, numHeads: 3, headDim: 6, isCausal: true } },
  'rope, softcap and window': {
    config: {
      ...{ dModel: 24, numHeads: 3, isCausal: true, softcap: 5, windowSize: [6, 0] },
      rope: { style: 'half', base: 500, rotaryDim: 4 },
    },
  },
  'key lengths': { config: { dModel: 12, numHeads: 3 }, options: { keyLengths: Int32Array.of(11, 4) } },
  'a mask': {
    config: { dModel: 12, numHeads: 3, isCausal: true },
    options: { attnMask: random(5).booleans([2, 1, 11, 11], 0.7) },
  },
  'norms of queries and keys': {
    config: { ...{ dModel: 24, numHeads: 3, numKvHeads: 1, isCausal: true, qkNorm: true }, rope: { style: 'half' } },
  },
  'norms with an epsilon of their own': { config: { dModel: 12, numHeads: 3, qkNorm: { epsilon: 0.5 } } },
  'scale, ALiBi and sinks': {
    config: {
      dModel: 12,
      numHeads: 3,
      isCausal: true,
      scale: 0.7,
      alibiSlopes: true,
      sinks: Float32Array.of(1, -2, 0),
    },
  },
  positions: {
    config: { dModel: 16, numHeads: 2, rope: { style: 'interleaved' } },
    options: { positions: { data: Int32Array.from({ length: 22 }, (_, n) => (n * 7) % 40), shape: [2, 11] } },
  },
};

function stateOf({ dModel, numHeads, numKvHeads = numHeads, headDim = dModel / numHeads, bias, qkNorm }) {
  const g = random(seedOf(`${dModel} ${numHeads} ${numKvHeads}`));
  const [inner, kv] = [numHeads * headDim, numKvHeads * headDim];
  const shapes = { q_proj: [inner, dModel], k_proj: [kv, dModel], v_proj: [kv, dModel], out_proj: [dModel, inner] };
  const state = {};
  for (const [name, shape] of Object.entries(shapes)) {
    state[`${name}.weight`] = g.tensor(shape, 0.3);
    if (bias) state[`${name}.bias`] = g.tensor(shape.slice(0, 1), 0.3);
  }
  for (const name of qkNorm ? ['q_norm', 'k_norm'] : []) state[`${name}.weight`] = g.tensor([headDim]);
  return state;
}

for (const build of builds()) {
  const attention = await loadBuild(build);

  describe(`linear, ${build}`, () => {
    const cases = [
      ...kEdges.map((M) => [M, 11, 13]),
      ...kEdges.map((N) => [9, N, 12]),
      ...kEdges.map((K) => [9, 10, K]),
      ...[
        [0, 3, 4],
        [64, 64, 64],
        [37, 131, 259],
        [1, 200, 300],
      ],
    ];
    for (const [M, N, K] of cases) {
      test(`[${M}, ${K}] × [${N}, ${K}]ᵀ`, () => {
        const g = random(seedOf(`${M} ${N} ${K}`));
        const [x, weight, bias] = [g.tensor([M, K]), g.tensor([N, K]), g.tensor([N])];
        const inputs = remember(x, weight, bias);
        assertClose(attention.linear(x, weight), linearOracle(x, weight), { ...tolerance(K), what: 'no bias' });
        const want = linearOracle(x, weight, bias);
        const plain = attention.linear(x, weight, bias);
        assertClose(plain, want, { ...tolerance(K), what: 'bias' });
        const packed = attention.packLinear(weight, bias);
        assertClose(attention.linear(x, packed), want, { ...tolerance(K), what: 'packed' });
        packed.dispose();
        assertUnchanged(inputs);
      });
    }

    test('leading axes are rows; a row has the same bits whatever rows come with it', () => {
      const g = random(12);
      const [x, weight] = [g.tensor([2, 19, 21]), g.tensor([35, 21])];
      const whole = attention.linear(x, weight);
      assert.deepEqual([...whole.shape], [2, 19, 35]);
      for (const [from, to] of [
        [0, 1],
        [7, 9],
        [15, 18],
        [3, 13],
      ]) {
        const part = attention.linear(slice(x, 1, from, to), weight);
        assertSameBits(part, slice(whole, 1, from, to), `rows ${from} to ${to}`);
        const item = slice(slice(x, 0, 1, 2), 1, from, to);
        assertSameBits(attention.linear(item, weight), slice(slice(whole, 0, 1, 2), 1, from, to));
      }
    });

    for (const M of [1, 2, 3, 37]) {
      test(`a residual, also in place: ${M} rows`, () => {
        const g = random(M);
        const [N, K] = [70, 19];
        const [x, weight, bias, residual] = [g.tensor([M, K]), g.tensor([N, K]), g.tensor([N]), g.tensor([M, N])];
        const inputs = remember(x, weight, bias, residual);
        const want = linearOracle(x, weight, bias).data.map((value, i) => value + residual.data[i]);
        const got = attention.linear(x, weight, bias, { residual });
        assertClose(got.data, want, tolerance(K));
        assertUnchanged(inputs);
        const packed = attention.packLinear(weight, bias);
        const out = attention.tensor(residual.data, residual.shape);
        assert.equal(attention.linear(x, packed, null, { residual: out, out }), out);
        assertSameBits(out, got);
        const half = cast(x, 'float16');
        const wantHalf = linearOracle(half, weight, bias).data.map((value, i) => value + residual.data[i]);
        const gotHalf = attention.linear(half, packed, null, { residual });
        assertClose(gotHalf, { data: wantHalf, shape: [M, N] }, { absolute: 1e-4, relative: 2 ** -11 });
        for (const resident of [packed, out]) resident.dispose();
      });
    }
  });

  describe(`multiHeadAttention, ${build}`, () => {
    for (const [name, { config, options = {} }] of Object.entries(layers)) {
      test(name, () => {
        const state = stateOf(config);
        const x = random(seedOf(name)).tensor([2, 11, config.dModel]);
        const inputs = remember(x, ...Object.values(state));
        const mha = attention.multiHeadAttention(config);
        mha.loadStateDict(state);
        const want = layerOracle(config, state, x, options);
        const { output, weights } = mha.forward(x, { ...options, needWeights: true });
        assertClose(output, want.output, { what: 'output' });
        assertClose(weights, want.weights, { what: 'weights' });
        assertClose(mha.forward(x, options).output, want.output, { what: 'output without weights' });
        const mean = mha.forward(x, { ...options, needWeights: 'mean' }).weights;
        assert.deepEqual([...mean.shape], [2, 11, 11]);
        for (const [key, tensor] of Object.entries(mha.stateDict())) assertSameBits(tensor, state[key], key);
        assertUnchanged(inputs);
        mha.dispose();
      });
    }

    test('a sequence without a batch, in half precision, and kept in memory', () => {
      const { config } = layers['rope, softcap and window'];
      const state = stateOf(config);
      const x = random(11).tensor([11, config.dModel]);
      const mha = attention.multiHeadAttention(config);
      mha.loadStateDict(state);
      const batch = (tensor) => ({ ...tensor, shape: [1, ...tensor.shape] });
      const want = layerOracle(config, state, batch(x));
      const { output, weights } = mha.forward(x, { needWeights: true });
      assertClose(batch(output), want.output);
      assertClose(batch(weights), want.weights);
      const half = cast(x, 'float16');
      const wantHalf = layerOracle(config, state, batch(half)).output;
      assertClose(batch(mha.forward(half).output), wantHalf, { absolute: 1e-5, relative: 2 ** -11 });
      const resident = attention.tensor(x.data, x.shape);
      const out = attention.tensor(null, x.shape);
      mha.forward(resident, { out });
      assertClose(batch({ data: out.data, shape: x.shape }), want.output);
      mha.dispose();
      for (const tensor of [resident, out]) tensor.dispose();
    });
  });
}
