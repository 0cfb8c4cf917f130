// Every option of attention over a key/value cache, and what a ring does with them.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { errorNaming } from './support/field.js';
import { attention as oracle } from './support/oracle.js';
import { attendAll, stackItems } from './support/oracle-cache.js';
import { random, seedOf } from './support/random.js';
import { assertClose, assertSameBits, cast, slice, transpose } from './support/tensors.js';

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

  describe(`attention over a key/value cache, ${build}`, () => {
    const T = 19;
    const { k, v } = tokens('options', T);
    const filled = (make, more) => {
      const cache = make(more);
      cache.append(k, v);
      return cache;
    };

    test(
      'every option, as over plain keys and values',
      withCaches((make) => {
        const cache = filled(make);
        const g = random(31);
        for (const Tq of [1, 3, 11, T]) {
          const q = queries(`options ${Tq}`, Tq);
          for (const [options, same = options] of [
            [{}, { isCausal: 'bottom-right' }],
            [{ isCausal: true }, { isCausal: 'bottom-right' }],
            [{ isCausal: 'bottom-right' }],
            [{ isCausal: 'top-left' }],
            [{ isCausal: false }],
            [{ queryOffset: 4 }, { queryOffset: 4, isCausal: true }],
            [{ queryOffset: [2, 9, -1], isCausal: false, windowSize: [3, 1] }],
            [{ scale: 0.3, softcap: 2, sinks: g.tensor([H]).data, alibiSlopes: true, windowSize: [6, -1] }, null],
            [{ attnMask: g.booleans([B, 1, Tq, T]) }, null],
            [{ attnMask: g.tensor([H, 1, T]), isCausal: false }],
            [{ queryLengths: [Tq, 0, 1] }, null],
            [{ needWeights: 'mean', isCausal: false }],
            [{ needWeights: { heads: [3], rows: [Tq - 1], stage: 'masked' } }, null],
          ]) {
            const want = attention.scaledDotProductAttention(q, k, v, {
              returnLse: true,
              ...(same ?? { isCausal: 'bottom-right', ...options }),
            });
            const got = cache.attend(q, { returnLse: true, ...options });
            for (const name of Object.keys(want))
              assertSameBits(got[name], want[name], `${JSON.stringify(options)} ${name}`);
          }
        }
      }),
    );

    test(
      'ranks, layouts, types, resident tensors',
      withCaches((make) => {
        const swap = (x) => transpose(x, [0, 2, 1, 3]);
        const q = queries('ranks', 3);
        const want = filled(make).attend(q).output;
        const swapped = make();
        swapped.append(swap(k), swap(v), { layout: 'bthd' });
        assertClose(swap(swapped.attend(swap(q), { layout: 'bthd' }).output), want, { absolute: 1e-6 });

        const [k3, v3, q3] = [k, v, q].map((x) => ({ ...item(x, 0), shape: x.shape.slice(1) }));
        const one = make({ batch: 1 });
        one.append(k3, v3);
        const rank3 = one.attend(q3, { needWeights: true, returnLse: true });
        assert.deepEqual(
          [...rank3.output.shape, ...rank3.weights.shape, ...rank3.lse.shape],
          [H, 3, Dv, H, 3, T, H, 3],
        );
        assertSameBits(rank3.output.data, item(want, 0).data);
        const flat = (x) => ({ data: x.data.slice(0, x.shape[1] * x.shape[2]), shape: x.shape.slice(1) });
        const single = make({ batch: 1, numKvHeads: 1 });
        single.append(flat(k3), flat(v3));
        assert.deepEqual([...single.attend(flat(q3)).output.shape], [3, Dv]);

        const resident = [k, v, q].map(({ data, shape }) => attention.tensor(data, shape));
        const out = attention.tensor(null, [B, H, 3, Dv]);
        const held = make();
        held.append(resident[0], resident[1]);
        assert.equal(held.attend(resident[2], { out }).output, out);
        assertSameBits(out.data, want.data);
        for (const tensor of [...resident, out]) tensor.dispose();

        for (const dtype of ['float16', 'bfloat16']) {
          const half = cast(q, dtype);
          const { output } = filled(make).attend(half);
          assert.equal(output.dtype, dtype);
          const plain = attention.scaledDotProductAttention(half, k, v, { isCausal: 'bottom-right' }).output;
          assertSameBits(output, plain);
        }
      }),
    );

    test(
      'a ring: ALiBi by true distance, masks and weights over what is held',
      withCaches((make) => {
        const ring = { window: 6, sinkTokens: 3 };
        const slopes = Float32Array.from({ length: H }, (_, h) => 0.3 / (h + 1));
        for (const chunk of [1, 4, 9]) {
          for (const slack of [0, 5]) {
            const cache = make({ capacity: 9 + chunk - 1 + slack, ...ring });
            for (let t = 0; t < T; t += chunk) {
              const end = Math.min(t + chunk, T);
              cache.append(slice(k, 2, t, end), slice(v, 2, t, end));
              const q = queries(`ring ${t}`, end - t);
              const options = { alibiSlopes: slopes, softcap: 4, sinks: slopes };
              const want = [0, 1, 2].map((b) => {
                const part = (x) => first(item(x, b), end);
                return attendAll(item(q, b), part(k), part(v), { position: t, ...ring, ...options });
              });
              const got = cache.attend(q, { ...options, needWeights: true });
              assertClose(got.output, stackItems(want.map(({ output }) => output)), { what: `chunk ${chunk} at ${t}` });
              // The weights of the tokens held: the first three, and the last ones.
              const gone = end - cache.length;
              const full = stackItems(want.map(({ weights }) => weights));
              const seen = got.weights.shape[3];
              got.weights.data.forEach((weight, n) => {
                const [row, j] = [Math.floor(n / seen), n % seen];
                const expected = full.data[row * end + (j < 3 ? j : j + gone)];
                assert.ok(Math.abs(weight - expected) < 1e-5, `${n}: ${weight} is not ${expected}`);
              });
            }
          }
        }
      }),
    );

    test(
      'a ring refuses rows whose window it let go, and windows that do not go with first tokens',
      withCaches((make) => {
        const cache = make({ capacity: 12, window: 6, sinkTokens: 3 });
        for (let t = 0; t < T; ++t) cache.append(slice(k, 2, t, t + 1), slice(v, 2, t, t + 1));
        cache.attend(queries('late', 4));
        assert.throws(() => cache.attend(queries('late', 5)), errorNaming('CAPACITY', 'KeyValueCache.attend: q must'));
        cache.attend(queries('late', 5), { queryLengths: [4, 3, 0] });
        assert.throws(() => cache.attend(queries('late', 1), { isCausal: 'top-left' }), errorNaming('CAPACITY'));
        assert.throws(
          () => cache.attend(queries('late', 1), { windowSize: [3, 0] }),
          errorNaming('INVALID_OPTION', 'windowSize[0]'),
        );
        const plain = make({ capacity: 12, window: 6 });
        for (let t = 0; t < T; ++t) plain.append(slice(k, 2, t, t + 1), slice(v, 2, t, t + 1));
        const q = queries('late', 2);
        const last = (x) => slice(x, 2, 7, T);
        for (const [windowSize, left] of [
          [[2, 0], 2],
          [[9, 0], 5],
          [[-1, 0], 5],
        ]) {
          const want = oracle(q, last(k), last(v), { isCausal: 'bottom-right', windowSize: [left, 0] }).output;
          assertClose(plain.attend(q, { windowSize }).output, want);
        }
      }),
    );

    test(
      'a tree of guesses, each of which sees its own branch',
      withCaches((make) => {
        const parents = [-1, 0, 0, 1, 1, 2];
        const cache = make();
        const prompt = 10;
        cache.append(first(k, prompt), first(v, prompt));
        const nodes = tokens('tree', parents.length);
        cache.append(nodes.k, nodes.v);
        const q = queries('tree', parents.length);
        const Tk = prompt + parents.length;
        const attnMask = { data: new Uint8Array(parents.length * Tk), shape: [parents.length, Tk] };
        const branches = parents.map((_, n) => {
          const branch = [];
          for (let node = n; node >= 0; node = parents[node]) branch.unshift(node);
          attnMask.data.fill(1, n * Tk, n * Tk + prompt);
          for (const node of branch) attnMask.data[n * Tk + prompt + node] = 1;
          return branch;
        });
        const { output } = cache.attend(q, { attnMask });
        branches.forEach((branch, n) => {
          cache.truncate(prompt);
          for (const node of branch) cache.append(slice(nodes.k, 2, node, node + 1), slice(nodes.v, 2, node, node + 1));
          assertClose(slice(output, 2, n, n + 1), cache.attend(slice(q, 2, n, n + 1)).output, { absolute: 1e-6 });
        });
      }),
    );
  });
}
