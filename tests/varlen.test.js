// varlenAttention and mergeAttention on every build against the oracle.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import {
  mergeAttention as mergeOracle,
  attention as oracle,
  varlenAttention as varlenOracle,
} from './support/oracle.js';
import { random, seedOf } from './support/random.js';
import {
  assertClose,
  assertSameBits,
  assertUnchanged,
  cast,
  edit,
  remember,
  slice,
  starts,
  transpose,
} from './support/tensors.js';

const [H, Hkv, D, Dv] = [4, 2, 10, 7];

const varlenCases = [
  { name: 'one sequence', q: [5], k: [7] },
  { name: 'sequences of every kind', q: [5, 1, 0, 33, 8], k: [7, 70, 3, 0, 8] },
  { name: 'causal, equal lengths', q: [5, 1, 0, 33, 64], k: [5, 1, 0, 33, 64], options: { isCausal: true } },
  { name: 'bottom-right', q: [5, 1, 40, 9], k: [7, 70, 33, 0], options: { isCausal: 'bottom-right' } },
  { name: 'top-left', q: [5, 1, 40, 9], k: [7, 70, 33, 0], options: { isCausal: 'top-left' } },
  { name: 'window', q: [5, 1, 70], k: [7, 70, 130], options: { isCausal: 'bottom-right', windowSize: [20, 0] } },
  { name: 'ALiBi', q: [5, 1, 33], k: [7, 70, 64], options: { isCausal: 'bottom-right', alibiSlopes: true } },
  { name: 'softcap and scale', q: [5, 2, 33], k: [7, 70, 64], options: { softcap: 1.5, scale: 0.7 } },
  { name: 'sinks', q: [5, 2, 33], k: [0, 70, 64], options: (g) => ({ sinks: g.tensor([H]).data }) },
  {
    name: 'offsets',
    q: [5, 2, 33],
    k: [9, 70, 64],
    options: { isCausal: true, queryOffset: Int32Array.of(-2, 30, 31) },
  },
  { name: 'float16', q: [5, 2, 33], k: [9, 70, 64], dtype: 'float16' },
  { name: 'no sequence', q: [], k: [] },
];

function varlenCall({ name, q, k, options = {}, dtype = 'float32' }) {
  const g = random(seedOf(`varlen ${name}`));
  const [cuSeqlensQ, cuSeqlensK] = [starts(q), starts(k)];
  const tensors = [
    g.tensor([cuSeqlensQ.at(-1), H, D]),
    g.tensor([cuSeqlensK.at(-1), Hkv, D]),
    g.tensor([cuSeqlensK.at(-1), Hkv, Dv]),
  ].map((x) => cast(x, dtype));
  return [...tensors, { cuSeqlensQ, cuSeqlensK, ...(typeof options === 'function' ? options(g) : options) }];
}

for (const build of builds()) {
  const attention = await loadBuild(build);

  describe(`varlenAttention, ${build}`, () => {
    for (const entry of varlenCases) {
      test(entry.name, () => {
        const [q, k, v, options] = varlenCall(entry);
        const inputs = remember(q, k, v);
        const want = varlenOracle(q, k, v, options);
        const got = attention.varlenAttention(q, k, v, { ...options, returnLse: true });
        const rounding = { absolute: 1e-5, relative: entry.dtype ? 2 ** -11 : 0 };
        assertClose(got.output, want.output, { ...rounding, what: 'output' });
        assertClose(got.lse, want.lse, { what: 'lse' });
        const { weights } = attention.varlenAttention(q, k, v, { ...options, needWeights: true });
        assert.equal(weights.length, entry.q.length);
        weights.forEach((tensor, s) => {
          assertClose(tensor, want.weights[s], { what: `weights of sequence ${s}` });
        });
        assertUnchanged(inputs);
      });
    }

    test('a sequence does not depend on its neighbours, and equals a call of its own', () => {
      const [q, k, v, options] = varlenCall(varlenCases[3]);
      const { cuSeqlensQ, cuSeqlensK, isCausal } = options;
      const whole = attention.varlenAttention(q, k, v, options).output;
      for (let s = 0; s + 1 < cuSeqlensQ.length; ++s) {
        const own = (x, bounds) => slice(x, 0, bounds[s], bounds[s + 1]);
        const spoil = (x, bounds) =>
          edit(x, (data) => {
            const width = x.shape[1] * x.shape[2];
            data.fill(Number.NaN, 0, bounds[s] * width).fill(Number.NaN, bounds[s + 1] * width);
          });
        const others = attention.varlenAttention(
          spoil(q, cuSeqlensQ),
          spoil(k, cuSeqlensK),
          spoil(v, cuSeqlensK),
          options,
        );
        assertSameBits(own(others.output, cuSeqlensQ), own(whole, cuSeqlensQ), `sequence ${s} beside NaN`);
        const heads = [own(q, cuSeqlensQ), own(k, cuSeqlensK), own(v, cuSeqlensK)].map((x) => transpose(x, [1, 0, 2]));
        const alone = attention.scaledDotProductAttention(...heads, { isCausal });
        assertClose(transpose(alone.output, [1, 0, 2]), own(whole, cuSeqlensQ), { absolute: 1e-6 });
      }
    });
  });

  describe(`mergeAttention, ${build}`, () => {
    const sizes = [2, 3, 5, 6];
    const parts = (count, seed) => {
      const g = random(seed);
      return Array.from({ length: count }, () => ({ output: g.tensor(sizes), lse: g.tensor(sizes.slice(0, 3), 3) }));
    };

    test('any number of parts, with and without sinks', () => {
      for (const count of [1, 2, 3, 8]) {
        const list = parts(count, count);
        for (const options of [undefined, { sinks: Float32Array.of(0.5, -3, 4) }]) {
          const got = attention.mergeAttention(list, options);
          const want = mergeOracle(list, options);
          assertClose(got.output, want.output, { what: 'output' });
          assertClose(got.lse, want.lse, { what: 'lse' });
        }
      }
    });

    test('parts far apart, and rows empty in some or all parts', () => {
      const list = parts(3, 9);
      list[0].lse.data.fill(-1e4, 0, 7).fill(Number.NEGATIVE_INFINITY, 7, 20);
      list[1].lse.data.fill(1e4, 0, 3).fill(Number.NEGATIVE_INFINITY, 10, 25);
      list[2].lse.data.fill(Number.NEGATIVE_INFINITY, 5, 22);
      const got = attention.mergeAttention(list);
      const want = mergeOracle(list);
      assertClose(got.output, want.output, { what: 'output' });
      assertClose(got.lse, want.lse, { relative: 1e-6, what: 'lse' });
    });

    test('an empty part counts for nothing, whatever its output holds', () => {
      const [part] = parts(1, 5);
      const empty = {
        output: { data: new Float32Array(180).fill(Number.NaN), shape: sizes },
        lse: { data: new Float32Array(30).fill(Number.NEGATIVE_INFINITY), shape: sizes.slice(0, 3) },
      };
      const got = attention.mergeAttention([empty, part, empty]);
      assertSameBits(got.output, part.output);
      assertSameBits(got.lse, part.lse);
    });

    test('lower ranks', () => {
      const g = random(3);
      const { output, lse } = oracle(g.tensor([4, 6]), g.tensor([9, 6]), g.tensor([9, 5]));
      const part = { output: cast(output, 'float32'), lse: cast(lse, 'float32') };
      const got = attention.mergeAttention([part, part]);
      assertClose(got.output, output);
      assertClose(
        got.lse.data,
        lse.data.map((x) => x + Math.LN2),
      );
    });
  });
}
