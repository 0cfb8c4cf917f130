// Failures that users of other attention code met, as tests of the whole kind: the key/value cache.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { errorNaming, tensors } from './support/field.js';
import { attention as oracle } from './support/oracle.js';
import { cacheTypes } from './support/oracle-cache.js';
import { assertClose, assertSameBits, slice } from './support/tensors.js';

const T = 32;
const chunkings = { whole: [32], halves: [16, 16], 'token by token': new Array(32).fill(1), uneven: [20, 4, 8] };

for (const build of builds()) {
  const attention = await loadBuild(build);
  const { allocated } = attention.memory;
  const cacheFor = (k, v, more) => {
    const [batch, numKvHeads, capacity, headDim] = k.shape;
    return attention.keyValueCache({ batch, numKvHeads, headDim, valueDim: v.shape[3], capacity, ...more });
  };

  describe(`the key/value cache, ${build}`, () => {
    test('D-061: cached decoding gives what a full pass gives, however the sequence is cut', () => {
      for (const B of [1, 3]) {
        for (const [H, Hkv] of [
          [4, 4],
          [6, 2],
        ]) {
          for (const rope of [null, { style: 'half' }, { style: 'interleaved', rotaryDim: 8 }]) {
            const { q, k, v } = tensors(`D-061 ${B} ${H}`, { B, H, Hkv, Tq: T, Tk: T, D: 16, Dv: 12 });
            const turn = (x, offset) => (rope ? attention.rope(x, { ...rope, offset }) : x);
            const want = attention.scaledDotProductAttention(turn(q, 0), turn(k, 0), v, { isCausal: true }).output;
            for (const [name, lengths] of Object.entries(chunkings)) {
              const cache = cacheFor(k, v);
              let at = 0;
              for (const length of lengths) {
                const part = (x) => slice(x, 2, at, at + length);
                assert.equal(cache.position, at);
                cache.append(turn(part(k), cache.position), part(v));
                const { output } = cache.attend(turn(part(q), at));
                assertClose(output, part(want), { absolute: 1e-6, what: `${name} at ${at}` });
                at += length;
              }
              cache.dispose();
            }
          }
        }
      }
    });

    test('D-062: a token beyond the capacity is refused, and the cache is as before', () => {
      const { q, k, v } = tensors('D-062', { B: 2, H: 2, Tq: 1, Tk: 9, D: 32, Dv: 64 });
      for (const dtype of cacheTypes) {
        const cache = cacheFor(k, v, { capacity: 8, dtype });
        for (let t = 0; t < 8; ++t) cache.append(slice(k, 2, t, t + 1), slice(v, 2, t, t + 1));
        const before = cache.attend(q).output;
        const ninth = [k, v].map((x) => slice(x, 2, 8, 9));
        const fails = errorNaming('CAPACITY', 'KeyValueCache.append', 'capacity of 8', 'beside 8 tokens', 'got 1');
        assert.throws(() => cache.append(...ninth), fails);
        assert.equal(cache.length, 8);
        assertSameBits(cache.attend(q).output, before);
        cache.dispose();
      }
    });

    test('D-066: cost and result depend on the length, not on the capacity', () => {
      const { q, k, v } = tensors('D-066', { H: 4, Hkv: 2, Tq: 1, Tk: 5, D: 32, Dv: 64 });
      const best = (cache) => {
        let least = Infinity;
        for (let n = 0; n < 40; ++n) {
          const start = performance.now();
          cache.attend(q);
          least = Math.min(least, performance.now() - start);
        }
        return least;
      };
      for (const dtype of cacheTypes) {
        const small = cacheFor(k, v, { dtype });
        const large = cacheFor(k, v, { dtype, capacity: 16384 });
        const poison = { data: new Float32Array(2 * 16384 * 64).fill(Number.NaN), shape: [1, 2, 16384, 64] };
        large.append({ data: poison.data.subarray(0, 2 * 16384 * 32), shape: [1, 2, 16384, 32] }, poison);
        large.clear();
        for (const cache of [small, large]) cache.append(k, v);
        assertSameBits(large.attend(q).output, small.attend(q).output);
        assert.deepEqual([large.length, large.capacity], [5, 16384]);
        const used = attention.memory;
        large.attend(q, { needWeights: true });
        assert.deepEqual(attention.memory, used);
        // A call that read all the rows would take over a thousand times as long.
        const [a, b] = [best(small), best(large)];
        assert.ok(b < 20 * a + 0.1, `${dtype}: ${b} ms, beside ${a} ms`);
        for (const cache of [small, large]) cache.dispose();
      }
    });

    test('D-067: keys and values are kept once for each group of query heads', () => {
      const [Hkv, capacity, D] = [2, 64, 32];
      for (const B of [1, 3]) {
        const before = attention.memory.allocated;
        const cache = attention.keyValueCache({ batch: B, numKvHeads: Hkv, headDim: D, capacity });
        assert.equal(cache.bytes, 2 * B * Hkv * capacity * D * 4);
        assert.ok(attention.memory.allocated - before < cache.bytes + 64);
        cache.dispose();
      }
    });

    test('D-069: weights and log-sum of one row cost O(Tk); two halves merge to the whole', () => {
      const { q, k, v } = tensors('D-069', { H: 6, Hkv: 3, Tq: 1, Tk: 4096, D: 16, Dv: 12 });
      const cache = cacheFor(k, v);
      cache.append(k, v);
      const before = attention.memory.total;
      const whole = cache.attend(q, { needWeights: true, returnLse: true });
      assert.ok(attention.memory.total - before < 2 ** 20);
      assert.deepEqual([...whole.weights.shape], [1, 6, 1, 4096]);
      for (let h = 0; h < 6; ++h) {
        const sum = whole.weights.data.subarray(h * 4096, (h + 1) * 4096).reduce((a, b) => a + b, 0);
        assert.ok(Math.abs(sum - 1) < 1e-6, `${sum}`);
      }
      const want = oracle(q, k, v);
      for (const name of ['output', 'lse']) assertClose(whole[name], want[name], { what: name });
      assertClose(whole.weights, want.weights, { absolute: 1e-6 });
      cache.dispose();
      const parts = [
        [0, 2048],
        [2048, 4096],
      ].map(([from, to]) => {
        const half = cacheFor(slice(k, 2, from, to), v);
        half.append(slice(k, 2, from, to), slice(v, 2, from, to));
        const { output, lse } = half.attend(q, { returnLse: true });
        half.dispose();
        return { output, lse };
      });
      const merged = attention.mergeAttention(parts);
      for (const name of ['output', 'lse']) assertClose(merged[name], whole[name], { absolute: 1e-6, what: name });
    });

    test('D-070: weights of chosen rows and heads are a slice of the whole, at their own cost', () => {
      const { q, k, v } = tensors('D-070', { H: 4, Hkv: 2, Tq: 70, Tk: 200, D: 16, Dv: 12 });
      const cache = cacheFor(k, v);
      cache.append(k, v);
      const full = cache.attend(q, { needWeights: true }).weights;
      const [heads, rows] = [
        [3, 0],
        [69, 5, 31],
      ];
      const some = cache.attend(q, { needWeights: { heads, rows } }).weights;
      assert.deepEqual([...some.shape], [1, 2, 3, 200]);
      heads.forEach((h, n) => {
        rows.forEach((i, r) => {
          const at = (h * 70 + i) * 200;
          const got = some.data.subarray((n * 3 + r) * 200, (n * 3 + r + 1) * 200);
          assertClose(got, full.data.subarray(at, at + 200), { absolute: 1e-7 });
        });
      });
      cache.dispose();
      const long = tensors('D-070 long', { Tq: 8192, Tk: 8192, D: 4, Dv: 4 });
      const large = cacheFor(long.k, long.v);
      large.append(long.k, long.v);
      const before = attention.memory.total;
      const options = { needWeights: { rows: [8191] }, queryOffset: 0, windowSize: [64, 0] };
      const { weights } = large.attend(long.q, options);
      assert.deepEqual([...weights.shape], [1, 1, 1, 8192]);
      assert.ok(attention.memory.total - before < 2 ** 22, 'a matrix of 8192 × 8192 would take 256 MiB');
      large.dispose();
    });

    test('D-071: a prompt and what follows; reset, and going back', () => {
      const { q, k, v } = tensors('D-071', { B: 2, H: 4, Hkv: 2, Tq: 12, Tk: 12, D: 32, Dv: 64 });
      const append = (cache, from, to) => cache.append(slice(k, 2, from, to), slice(v, 2, from, to));
      const rows = (cache, count) => cache.attend(slice(q, 2, 0, count)).output;
      for (const dtype of cacheTypes) {
        const [used, fresh] = [cacheFor(k, v, { dtype }), cacheFor(k, v, { dtype })];
        append(used, 5, 12);
        used.clear();
        assert.deepEqual([used.length, used.position], [0, 0]);
        for (const cache of [used, fresh]) append(cache, 0, 6);
        assertSameBits(rows(used, 3), rows(fresh, 3));
        const snapshot = used.snapshot();
        append(used, 8, 12);
        used.truncate(6);
        for (const cache of [used, fresh]) append(cache, 6, 7);
        assertSameBits(rows(used, 1), rows(fresh, 1));
        append(used, 9, 12);
        used.restore(snapshot);
        append(used, 6, 7);
        assertSameBits(rows(used, 1), rows(fresh, 1));
        for (const cache of [used, fresh]) cache.dispose();
      }
    });

    test('nothing stays behind', () => {
      assert.equal(attention.memory.allocated, allocated);
    });
  });
}
