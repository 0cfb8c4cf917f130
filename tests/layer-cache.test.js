// The multi-head layer over a key/value cache: what it gives for a whole sequence it gives for its pieces.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { errorNaming } from './support/field.js';
import { multiHeadAttention as layerOracle } from './support/oracle-layers.js';
import { random, seedOf } from './support/random.js';
import { assertClose, assertSameBits, slice } from './support/tensors.js';

const [B, T, dModel, numHeads, numKvHeads, headDim] = [2, 13, 24, 4, 2, 32];

const layers = {
  plain: {},
  'rope and bias': { rope: { style: 'half', base: 300 }, bias: true },
  'part of the width, norms': { rope: { style: 'interleaved', rotaryDim: 12 }, qkNorm: true },
  'every option': {
    ...{ scale: 0.3, softcap: 4, alibiSlopes: true, sinks: Float32Array.of(0, 1, -1, 2), windowSize: [5, 0] },
    rope: { style: 'half' },
  },
};

function stateOf({ bias, qkNorm }) {
  const g = random(7);
  const [inner, kv] = [numHeads * headDim, numKvHeads * headDim];
  const shapes = { q_proj: [inner, dModel], k_proj: [kv, dModel], v_proj: [kv, dModel], out_proj: [dModel, inner] };
  const state = {};
  for (const [name, shape] of Object.entries(shapes)) {
    state[`${name}.weight`] = g.tensor(shape, 0.1);
    if (bias) state[`${name}.bias`] = g.tensor(shape.slice(0, 1), 0.3);
  }
  for (const name of qkNorm ? ['q_norm', 'k_norm'] : []) state[`${name}.weight`] = g.tensor([headDim]);
  return state;
}

/** Sums in another order. */
const same = { absolute: 1e-6 };

const tokens = (x, from, to) => slice(x, 1, from, to);
const item = (x, b) => slice(x, 0, b, b + 1);

for (const build of builds()) {
  const attention = await loadBuild(build);
  const { allocated } = attention.memory;
  const layerOf = (more) => {
    const mha = attention.multiHeadAttention({ dModel, numHeads, numKvHeads, headDim, isCausal: true, ...more });
    mha.loadStateDict(stateOf(more));
    return mha;
  };
  const cacheOf = (more) => attention.keyValueCache({ batch: B, numKvHeads, headDim, capacity: T, ...more });

  describe(`a layer with a cache, ${build}`, () => {
    for (const [name, more] of Object.entries(layers)) {
      test(`${name}: a sequence in pieces`, () => {
        const mha = layerOf(more);
        const x = random(seedOf(name)).tensor([B, T, dModel]);
        const want = layerOracle({ numHeads, numKvHeads, isCausal: true, ...more }, stateOf(more), x);
        assertClose(mha.forward(x).output, want.output, { what: 'without a cache' });
        for (const lengths of [[T], new Array(T).fill(1), [4, 9], [1, 8, 2, 2]]) {
          const cache = cacheOf();
          let at = 0;
          for (const length of lengths) {
            const { output, weights } = mha.forward(tokens(x, at, at + length), { cache, needWeights: true });
            assertClose(output, tokens(want.output, at, at + length), { what: `at ${at}` });
            assert.deepEqual([...weights.shape], [B, numHeads, length, at + length]);
            const seen = slice(slice(want.weights, 2, at, at + length), 3, 0, at + length);
            assertClose(weights, seen, { what: `weights at ${at}` });
            at += length;
          }
          assert.equal(cache.position, T);
          cache.dispose();
        }
        mha.dispose();
      });
    }

    test('items of different lengths, each with its own positions', () => {
      const more = layers['rope and bias'];
      const mha = layerOf(more);
      const g = random(8);
      const cache = cacheOf();
      const alone = [0, 1].map(() => cacheOf({ batch: 1 }));
      for (const lengths of [
        [3, 5],
        [1, 1],
        [0, 2],
        [4, 0],
      ]) {
        const length = Math.max(...lengths);
        const x = g.tensor([B, length, dModel]);
        const { output } = mha.forward(x, { cache, keyLengths: lengths });
        lengths.forEach((count, b) => {
          const want = mha.forward(tokens(item(x, b), 0, count), { cache: alone[b] }).output;
          assertClose(tokens(item(output, b), 0, count), want, same);
        });
      }
      assert.deepEqual([...cache.positions], [8, 8]);
      for (const each of [mha, cache, ...alone]) each.dispose();
    });

    test('positions given; a sequence without a batch; not causal', () => {
      const mha = layerOf({ rope: { style: 'half' } });
      const x = random(9).tensor([T, dModel]);
      const positions = Int32Array.from({ length: T }, (_, t) => 3 * t + 5);
      const want = mha.forward(x, { positions }).output;
      const cache = cacheOf({ batch: 1 });
      const part = (from, to) => slice(x, 0, from, to);
      const a = mha.forward(part(0, 6), { cache, positions: positions.slice(0, 6) }).output;
      const b = mha.forward(part(6, T), { cache, positions: positions.slice(6) }).output;
      assertClose(a, slice(want, 0, 0, 6), same);
      assertClose(b, slice(want, 0, 6, T), same);
      const open = layerOf({ isCausal: false });
      cache.clear();
      open.forward(part(0, 6), { cache });
      assertClose(open.forward(part(6, T), { cache }).output, slice(open.forward(x).output, 0, 6, T), {
        ...same,
      });
      for (const each of [mha, open, cache]) each.dispose();
    });

    test('a mask over all that is held', () => {
      const mha = layerOf({});
      const g = random(10);
      const x = g.tensor([B, T, dModel]);
      const attnMask = g.booleans([B, 1, T, T], 0.7);
      const want = mha.forward(x, { attnMask }).output;
      const cache = cacheOf();
      mha.forward(tokens(x, 0, 8), { cache, attnMask: slice(slice(attnMask, 2, 0, 8), 3, 0, 8) });
      const { output } = mha.forward(tokens(x, 8, T), { cache, attnMask: slice(attnMask, 2, 8, T) });
      assertClose(output, tokens(want, 8, T), same);
      for (const each of [mha, cache]) each.dispose();
    });

    test('a ring is the window of the layer', () => {
      const rope = { style: 'half' };
      const x = random(11).tensor([B, T, dModel]);
      const windowed = layerOf({ rope, windowSize: [4, 0] });
      const plain = layerOf({ rope });
      const want = windowed.forward(x).output;
      for (const mha of [windowed, plain]) {
        const cache = cacheOf({ capacity: 7, window: 5 });
        for (let t = 0; t < T; t += 3) {
          const end = Math.min(t + 3, T);
          assertClose(mha.forward(tokens(x, t, end), { cache }).output, tokens(want, t, end), { what: `at ${t}` });
        }
        assert.deepEqual([cache.position, cache.length], [T, 7]);
        cache.dispose();
      }
      for (const mha of [windowed, plain]) mha.dispose();
    });

    test('what is refused leaves the cache as it was', () => {
      const mha = layerOf({});
      const x = random(12).tensor([B, 4, dModel]);
      const cache = cacheOf({ capacity: 6 });
      mha.forward(x, { cache });
      const held = attention.memory.allocated;
      const before = cache.snapshot();
      const q = random(13).tensor([B, numHeads, 1, headDim]);
      const answer = cache.attend(q).output;
      const refused = (options, code, ...words) => {
        assert.throws(() => mha.forward(x, { cache, ...options }), errorNaming(code, ...words));
        assert.equal(cache.length, 4);
        assertSameBits(cache.attend(q).output, answer);
        assert.equal(attention.memory.allocated, held);
      };
      refused({}, 'CAPACITY', 'MultiHeadAttention.forward');
      refused({ keyLengths: [2, 3] }, 'CAPACITY');
      refused({ keyLengths: [2, 2], attnMask: new Uint8Array(3) }, 'INVALID_SHAPE', 'attnMask');
      refused({ context: x }, 'INVALID_OPTION', 'cache must not be given beside context');
      const others = [
        cacheOf({ batch: 1 }),
        cacheOf({ numKvHeads: 4 }),
        cacheOf({ headDim: 64 }),
        cacheOf({ valueDim: 64 }),
      ];
      for (const other of others) {
        assert.throws(() => mha.forward(x, { cache: other }), errorNaming('INVALID_OPTION', 'cache must be made with'));
        other.dispose();
      }
      assert.throws(() => mha.forward(x, { cache: others[0] }), errorNaming('DISPOSED', 'cache'));
      assert.throws(
        () => mha.forward(x, { cache: {} }),
        errorNaming('INVALID_OPTION', 'cache must be a KeyValueCache'),
      );
      cache.restore(before);
      for (const each of [mha, cache]) each.dispose();
      assert.equal(attention.memory.allocated, allocated);
    });
  });
}
