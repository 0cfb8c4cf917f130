// What a key/value cache holds: lengths of items, room, going back, copies.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { errorNaming } from './support/field.js';
import { attendAll, cacheTypes } from './support/oracle-cache.js';
import { random, seedOf } from './support/random.js';
import { assertClose, assertSameBits, slice } from './support/tensors.js';

const [B, Hkv, H, D, Dv] = [3, 2, 4, 32, 64];
const config = { batch: B, numKvHeads: Hkv, headDim: D, valueDim: Dv };
const tokens = (name, T, batch = B) => {
  const g = random(seedOf(name));
  return { g, k: g.tensor([batch, Hkv, T, D]), v: g.tensor([batch, Hkv, T, Dv]) };
};
const queries = (name, T, batch = B) => random(seedOf(name)).tensor([batch, H, T, D]);
const item = (x, b) => slice(x, 0, b, b + 1);
const first = (x, count) => slice(x, 2, 0, count);

for (const build of builds()) {
  const attention = await loadBuild(build);
  const { allocated } = attention.memory;
  /** Gives caches to a test, and has them disposed of. */
  const withCaches = (run) => (t) => {
    const made = [];
    const make = (more) => {
      made.push(attention.keyValueCache({ ...config, capacity: 24, ...more }));
      return made.at(-1);
    };
    try {
      return run(make, t);
    } finally {
      for (const cache of made) cache.dispose();
      assert.equal(attention.memory.allocated, allocated);
    }
  };

  describe(`states of a key/value cache, ${build}`, () => {
    test(
      'items of different lengths',
      withCaches((make) => {
        for (const dtype of cacheTypes) {
          const cache = make({ dtype });
          const alone = [0, 1, 2].map(() => make({ dtype, batch: 1 }));
          for (const [n, lengths] of [
            [5, 0, 9],
            [2, 1, 0],
            [1, 1, 1],
            [0, 12, 9],
          ].entries()) {
            const T = Math.max(...lengths);
            const { k, v } = tokens(`${dtype} ${n}`, T);
            cache.append(k, v, { lengths: n % 2 ? Int32Array.from(lengths) : lengths });
            const q = queries(`${dtype} ${n}`, T);
            const { output, lse } = cache.attend(q, { queryLengths: lengths, returnLse: true });
            lengths.forEach((length, b) => {
              alone[b].append(first(item(k, b), length), first(item(v, b), length));
              const want = alone[b].attend(first(item(q, b), length), { returnLse: true });
              // Blocks of rows differ where the batch is padded, and with them the order of sums.
              assertClose(first(item(output, b), length), want.output, {
                absolute: dtype.includes('float') ? 1e-6 : 2e-4,
              });
              assertClose(slice(item(lse, b), 2, 0, length), want.lse, { absolute: 1e-5 });
              assert.ok(slice(item(output, b), 2, length, T).data.every((x) => x === 0));
            });
            assert.deepEqual(
              [...cache.lengths],
              alone.map(({ length }) => length),
            );
            assert.deepEqual([...cache.positions], [...cache.lengths]);
          }
          assert.equal(cache.length, 19);
        }
      }),
    );

    test(
      'what does not fit is refused, and changes nothing',
      withCaches((make) => {
        const ring = { window: 6, sinkTokens: 2 };
        for (const dtype of cacheTypes) {
          for (const [more, good, bad] of [
            [{ capacity: 8 }, [8], [1, 20]],
            [{ capacity: 8, ...ring }, [8], [2, 3, 9]],
            [{ capacity: 10, ...ring }, [7, 3], [4, 11]],
            [{ capacity: 10, ...ring }, [4], [7, 8]],
            [{ capacity: 10, ...ring }, [], [11, 12]],
          ]) {
            const cache = make({ dtype, ...more });
            for (const [n, T] of good.entries()) cache.append(...Object.values(tokens(`room ${n}`, T)).slice(1));
            const before = cache.attend(queries('room', 1)).output;
            const { positions, lengths } = cache;
            for (const T of bad) {
              const { k, v } = tokens('no room', T);
              assert.throws(
                () => cache.append(k, v),
                errorNaming('CAPACITY', 'KeyValueCache.append: k must', `got ${T}`),
              );
              if (T > 1) assert.throws(() => cache.append(k, v, { lengths: [0, 1, T] }), errorNaming('CAPACITY'));
              assert.deepEqual([cache.positions, cache.lengths], [positions, lengths]);
              assertSameBits(cache.attend(queries('room', 1)).output, before);
            }
          }
        }
      }),
    );

    test(
      'a ring tells how many tokens it takes at once',
      withCaches((make) => {
        const cache = make({ capacity: 20, window: 6, sinkTokens: 3 });
        const { k, v } = tokens('ring room', 20);
        cache.append(first(k, 11), first(v, 11));
        // 9 rows are free; after them a chunk may have 20 − 3 − 6 + 1 = 12 tokens.
        assert.throws(() => cache.append(first(k, 13), first(v, 13)), errorNaming('CAPACITY', 'at most 12 tokens'));
        cache.append(first(k, 12), first(v, 12));
        assert.equal(cache.position, 23);
        assert.equal(cache.length, 20);
      }),
    );

    test(
      'capacity beyond the length is never read',
      withCaches((make) => {
        for (const dtype of cacheTypes) {
          const { k, v } = tokens('tail', 24);
          const [clean, dirty] = [make({ dtype }), make({ dtype })];
          const poison = (x) => ({ data: new Float32Array(x.data.length).fill(Number.NaN), shape: x.shape });
          dirty.append(poison(k), poison(v));
          dirty.clear();
          for (const cache of [clean, dirty]) cache.append(first(k, 5), first(v, 5), { lengths: [5, 0, 3] });
          for (const Tq of [1, 3, 9, 40]) {
            for (const stage of ['scores', 'capped', 'masked', 'weights']) {
              const options = { needWeights: { stage }, returnLse: true, softcap: 3 };
              const [want, got] = [clean, dirty].map((cache) => cache.attend(queries('tail', Tq), options));
              for (const name of ['output', 'weights', 'lse']) assertSameBits(got[name], want[name], name);
              if (stage === 'scores') assert.ok(!got.weights.data.some(Number.isNaN));
            }
          }
        }
      }),
    );

    test(
      'truncate: as if what follows had never come',
      withCaches((make) => {
        for (const dtype of cacheTypes) {
          const { k, v } = tokens('truncate', 24);
          const other = tokens('other', 24);
          const append = (cache, x, from, to) => cache.append(slice(x.k, 2, from, to), slice(x.v, 2, from, to));
          const [a, b] = [make({ dtype }), make({ dtype })];
          append(a, { k, v }, 0, 20);
          append(b, { k, v }, 0, 11);
          a.truncate(11);
          assert.deepEqual(a.lengths, Int32Array.of(11, 11, 11));
          append(a, other, 0, 3);
          append(b, other, 0, 3);
          assertSameBits(a.attend(queries('t', 3)).output, b.attend(queries('t', 3)).output);
          a.truncate([14, 3, 0]);
          assert.deepEqual(a.lengths, Int32Array.of(14, 3, 0));
          b.truncate(3);
          const rows = a.attend(queries('t', 2)).output;
          assertClose(item(rows, 1), item(b.attend(queries('t', 2)).output, 1), { absolute: 1e-6 });
          assert.ok(item(rows, 2).data.every((x) => x === 0));
          for (const n of [15, -1, 1.5, Number.NaN, 4, [14, 4, 0], [1, 1], '3', null]) {
            assert.throws(
              () => a.truncate(n),
              (error) => ['INVALID_OPTION', 'INVALID_SHAPE', 'INVALID_DTYPE'].includes(error.code),
            );
          }
          assert.deepEqual(a.lengths, Int32Array.of(14, 3, 0));
        }
      }),
    );

    test(
      'truncate: a ring goes back as far as it still holds what the next token sees',
      withCaches((make) => {
        const ring = { window: 5, sinkTokens: 2 };
        const { k, v } = tokens('ring back', 24, 1);
        const append = (cache, from, to) => cache.append(slice(k, 2, from, to), slice(v, 2, from, to));
        for (const capacity of [7, 8, 12]) {
          const cache = make({ capacity, batch: 1, ...ring });
          for (let t = 0; t < 20; ++t) append(cache, t, t + 1);
          assert.equal(cache.length, capacity);
          for (let n = 3; n < 6; ++n) assert.throws(() => cache.truncate(n), errorNaming('CAPACITY', 'at least'));
          cache.truncate(6); // sinkTokens + window − 1
          assert.deepEqual([cache.length, cache.position], [6, 20 - capacity + 6]);
          const at = cache.position;
          append(cache, 20, 21);
          const q = queries('ring back', 1, 1);
          const seen = (x) => ({
            data: Float32Array.from(
              [0, 1].flatMap((h) => [
                ...slice(slice(x, 1, h, h + 1), 2, 0, at).data,
                ...slice(slice(x, 1, h, h + 1), 2, 20, 21).data,
              ]),
            ),
            shape: [1, Hkv, at + 1, x.shape[3]],
          });
          assertClose(cache.attend(q).output, attendAll(q, seen(k), seen(v), { position: at, ...ring }).output);
          cache.truncate(2);
          assert.deepEqual([cache.length, cache.position], [2, 2]);
          append(cache, 2, 3);
          assertClose(cache.attend(q).output, attendAll(q, first(k, 3), first(v, 3), { position: 2, ...ring }).output);
        }
      }),
    );

    test(
      'snapshot and restore',
      withCaches((make) => {
        for (const dtype of cacheTypes) {
          for (const ring of [{}, { window: 7, sinkTokens: 2 }]) {
            const { k, v } = tokens('snapshot', 24);
            const append = (cache, from, to) => cache.append(slice(k, 2, from, to), slice(v, 2, from, to));
            const cache = make({ dtype, capacity: ring.window ? 12 : 24, ...ring });
            const empty = cache.snapshot();
            for (let t = 0; t < 18; t += 3) append(cache, t, t + 3);
            const q = queries('snapshot', 2);
            const want = cache.attend(q).output;
            const state = [cache.lengths, cache.positions];
            const snapshot = cache.snapshot();
            for (let t = 18; t < 24; t += 2) append(cache, t, t + 2);
            const later = cache.attend(q).output;
            for (let n = 0; n < 2; ++n) {
              cache.restore(snapshot);
              assert.deepEqual([cache.lengths, cache.positions], state);
              assertSameBits(cache.attend(q).output, want);
              for (let t = 18; t < 24; t += 2) append(cache, t, t + 2);
              assertSameBits(cache.attend(q).output, later);
            }
            cache.restore(empty);
            assert.equal(cache.length, 0);
            assert.ok(cache.attend(q).output.data.every((x) => x === 0));
            const other = make({ dtype, capacity: 24 });
            for (const wrong of [snapshot, null, {}, undefined]) {
              assert.throws(
                () => other.restore(wrong),
                errorNaming('INVALID_OPTION', 'snapshot must be one of this cache'),
              );
            }
          }
        }
      }),
    );

    test(
      'one cache never changes another; a cleared one is as new',
      withCaches((make) => {
        const { k, v } = tokens('two', 24);
        const other = tokens('three', 24);
        const caches = cacheTypes.map((dtype) => make({ dtype }));
        for (const cache of caches) cache.append(first(k, 9), first(v, 9));
        const q = queries('two', 2);
        const before = caches.map((cache) => cache.attend(q).output);
        attention.tensor(null, [2 ** 22]).dispose(); // makes the memory grow
        for (const [n, cache] of caches.entries()) {
          cache.append(other.k.data.length ? first(other.k, 15) : k, first(other.v, 15));
          cache.clear();
          cache.append(first(k, 9), first(v, 9));
          caches.forEach((each, m) => {
            if (m >= n) assertSameBits(each.attend(q).output, before[m]);
          });
        }
      }),
    );

    test(
      'bytes are those of keys and values, not of query heads',
      withCaches((make) => {
        const rows = B * Hkv * 24;
        const token = { float32: 4 * (D + Dv), float16: 2 * (D + Dv), bfloat16: 2 * (D + Dv), int8: D + Dv + 8 };
        const sizes = { ...token, q8_0: 34 * 3, q4_0: 18 * 3 };
        for (const dtype of cacheTypes) {
          const held = attention.memory.allocated;
          const cache = make({ dtype });
          assert.equal(cache.bytes, rows * sizes[dtype], dtype);
          assert.ok(attention.memory.allocated - held <= cache.bytes + 80);
          assert.deepEqual([cache.dtype, cache.capacity], [dtype, 24]);
        }
      }),
    );

    test(
      'after dispose',
      withCaches((make) => {
        const cache = make({});
        const snapshot = cache.snapshot();
        cache.dispose();
        cache.dispose();
        if (Symbol.dispose) cache[Symbol.dispose]();
        assert.equal(cache.disposed, true);
        const { k, v } = tokens('gone', 1);
        for (const use of [
          () => cache.append(k, v),
          () => cache.attend(queries('gone', 1)),
          () => cache.length,
          () => cache.lengths,
          () => cache.position,
          () => cache.positions,
          () => cache.bytes,
          () => cache.truncate(0),
          () => cache.clear(),
          () => cache.snapshot(),
          () => cache.restore(snapshot),
        ]) {
          assert.throws(use, errorNaming('DISPOSED', 'KeyValueCache.'));
        }
      }),
    );
  });
}
