// What holds for attention whatever the numbers are.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { attentionCase } from './support/attention-case.js';
import { builds, loadBuild } from './support/builds.js';
import { attentionCases } from './support/cases.js';
import { random, seedOf } from './support/random.js';
import { assertClose, assertSameBits, edit, slice, transpose } from './support/tensors.js';

const kSizes = { B: 2, H: 6, Hkv: 3, Tq: 37, Tk: 101, D: 20, Dv: 12 };

function tensors(name, sizes = {}) {
  const { B, H, Hkv, Tq, Tk, D, Dv } = { ...kSizes, ...sizes };
  const g = random(seedOf(name));
  return { g, q: g.tensor([B, H, Tq, D]), k: g.tensor([B, Hkv, Tk, D]), v: g.tensor([B, Hkv, Tk, Dv]) };
}

/** Tokens in another order: row `order[t]` of `x` comes to t. */
function permuteTokens(x, order) {
  const parts = order.map((t) => slice(x, 2, t, t + 1));
  const [B, H, T, D] = x.shape;
  const joined = { data: new Float32Array(x.data.length), shape: [T, B, H, D] };
  parts.forEach((part, t) => {
    joined.data.set(part.data, t * B * H * D);
  });
  return transpose(joined, [1, 2, 0, 3]);
}

for (const build of builds()) {
  const attention = await loadBuild(build);
  const attend = (...call) => attention.scaledDotProductAttention(...call);

  describe(`laws, ${build}`, () => {
    test('every row of weights sums to 1, each within [0, 1]', () => {
      const { q, k, v } = tensors('row sums');
      const { weights } = attend(q, k, v, { needWeights: true, isCausal: 'bottom-right', softcap: 3 });
      for (let row = 0; row < weights.data.length; row += kSizes.Tk) {
        const values = weights.data.subarray(row, row + kSizes.Tk);
        assert.ok(values.every((w) => w >= 0 && w <= 1));
        assert.ok(Math.abs(values.reduce((a, b) => a + b, 0) - 1) <= 1e-6);
      }
    });

    test('with a sink, the rest of the row is the sink’s own weight', () => {
      const { g, q, k, v } = tensors('sink sums');
      const sinks = g.tensor([kSizes.H]).data;
      const { weights, lse } = attend(q, k, v, { needWeights: true, returnLse: true, sinks });
      for (let row = 0; row < lse.data.length; ++row) {
        const sum = weights.data.subarray(row * kSizes.Tk, (row + 1) * kSizes.Tk).reduce((a, b) => a + b, 0);
        const sinkWeight = Math.exp(sinks[Math.floor(row / kSizes.Tq) % kSizes.H] - lse.data[row]);
        assert.ok(Math.abs(sum + sinkWeight - 1) <= 2e-6, `row ${row}: ${sum} + ${sinkWeight}`);
      }
    });

    test('weights times values are the output', () => {
      const { q, k, v } = tensors('weights times values', { Hkv: 6 });
      const { output, weights } = attend(q, k, v, { needWeights: true });
      const { Tq, Tk, Dv } = kSizes;
      const product = output.data.map((_, n) => {
        const [row, d] = [Math.floor(n / Dv), n % Dv];
        const head = Math.floor(row / Tq);
        let sum = 0;
        for (let j = 0; j < Tk; ++j) sum += weights.data[row * Tk + j] * v.data[(head * Tk + j) * Dv + d];
        return sum;
      });
      assertClose(product, output.data, { absolute: 2e-6 });
    });

    test('asking for weights or lse changes no output', () => {
      for (const Tq of [1, 5, 37]) {
        const { q, k, v } = tensors(`asking ${Tq}`, { Tq });
        const options = { isCausal: 'bottom-right', windowSize: [70, -1] };
        const { output } = attend(q, k, v, options);
        assertClose(attend(q, k, v, { ...options, needWeights: true }).output, output, { absolute: 1e-6 });
        assertClose(attend(q, k, v, { ...options, needWeights: 'mean' }).output, output, { absolute: 1e-6 });
        assertSameBits(attend(q, k, v, { ...options, returnLse: true }).output, output);
      }
    });

    test('a causal prefix does not depend on the suffix', () => {
      const T = 128;
      const { q, k, v } = tensors('causal prefix', { Tq: T, Tk: T });
      const { output } = attend(q, k, v, { isCausal: true });
      const spoil = (x, from) =>
        edit(x, (data) => {
          const [B, H, , D] = x.shape;
          for (let bh = 0; bh < B * H; ++bh) data.fill(Number.NaN, (bh * T + from) * D, (bh + 1) * T * D);
        });
      for (const from of [1, 31, 64, 77, 127]) {
        const spoilt = attend(spoil(q, from), spoil(k, from), spoil(v, from), { isCausal: true });
        assertSameBits(slice(spoilt.output, 2, 0, from), slice(output, 2, 0, from), `prefix of ${from}`);
        const cut = [q, k, v].map((x) => slice(x, 2, 0, from));
        const alone = attend(...cut, { isCausal: true });
        assertClose(alone.output, slice(output, 2, 0, from), { absolute: 1e-6, what: `prefix of ${from} alone` });
      }
    });

    test('permuting keys and values together changes nothing', () => {
      for (const Tq of [1, 37]) {
        const { g, q, k, v } = tensors(`permutation ${Tq}`, { Tq });
        const order = Array.from({ length: kSizes.Tk }, (_, t) => t);
        for (let t = order.length - 1; t > 0; --t) {
          const other = g.integer(0, t);
          [order[t], order[other]] = [order[other], order[t]];
        }
        const permuted = attend(q, permuteTokens(k, order), permuteTokens(v, order), { returnLse: true });
        const straight = attend(q, k, v, { returnLse: true });
        assertClose(permuted.output, straight.output, { absolute: 1e-6 });
        assertClose(permuted.lse, straight.lse, { absolute: 1e-6 });
      }
    });

    test('permuting queries permutes rows', () => {
      const { q, k, v } = tensors('query order');
      const order = Array.from({ length: kSizes.Tq }, (_, t) => (t * 5 + 3) % kSizes.Tq);
      const permuted = attend(permuteTokens(q, order), k, v).output;
      assertClose(permuted, permuteTokens(attend(q, k, v).output, order), { absolute: 1e-6 });
    });

    test('an item of a batch does not depend on its neighbours, bit for bit', () => {
      for (const Tq of [1, 6, 70]) {
        const { q, k, v } = tensors(`neighbours ${Tq}`, { B: 3, Tq });
        const options = { isCausal: 'bottom-right', keyLengths: Int32Array.of(50, 101, 9), returnLse: true };
        const together = attend(q, k, v, options);
        for (let b = 0; b < 3; ++b) {
          const item = [q, k, v].map((x) => slice(x, 0, b, b + 1));
          const alone = attend(...item, { ...options, keyLengths: options.keyLengths.slice(b, b + 1) });
          assertSameBits(alone.output, slice(together.output, 0, b, b + 1), `item ${b}`);
          assertSameBits(alone.lse, slice(together.lse, 0, b, b + 1), `lse of item ${b}`);
        }
      }
    });

    test('chunks of queries with queryOffset equal one call', () => {
      const T = 101;
      const { q, k, v } = tensors('chunks', { Tq: T });
      const whole = attend(q, k, v, { isCausal: true, windowSize: [40, 0] }).output;
      for (const size of [1, 8, 17, 64]) {
        for (let from = 0; from < T; from += size) {
          const to = Math.min(T, from + size);
          const options = { isCausal: true, queryOffset: from, windowSize: [40, 0] };
          const part = attend(slice(q, 2, from, to), k, v, options).output;
          assertClose(part, slice(whole, 2, from, to), { absolute: 1e-6, what: `rows ${from} to ${to}` });
        }
      }
    });

    test('grouped heads equal repeated heads', () => {
      for (const Tq of [1, 37]) {
        const { q, k, v } = tensors(`grouped ${Tq}`, { Tq });
        const repeat = (x) => {
          const pairs = [0, 1, 2].flatMap((head) => [head, head]).map((head) => slice(x, 1, head, head + 1));
          const [B, , T, D] = x.shape;
          const joined = { data: new Float32Array(6 * B * T * D), shape: [6, B, T, D] };
          pairs.forEach((part, h) => {
            joined.data.set(part.data, h * B * T * D);
          });
          return transpose(joined, [1, 0, 2, 3]);
        };
        assertClose(attend(q, repeat(k), repeat(v)).output, attend(q, k, v).output, { absolute: 1e-6 });
      }
    });

    test('both layouts give one answer', () => {
      const { q, k, v } = tensors('layouts');
      const swapped = [q, k, v].map((x) => transpose(x, [0, 2, 1, 3]));
      const { output } = attend(...swapped, { layout: 'bthd' });
      assertClose(transpose(output, [0, 2, 1, 3]), attend(q, k, v).output, { absolute: 1e-6 });
    });

    test('a window that covers everything is no window; a mask of ones is no mask', () => {
      const { q, k, v } = tensors('open');
      const { output } = attend(q, k, v);
      const ones = { data: new Uint8Array(kSizes.Tq * kSizes.Tk).fill(1), shape: [kSizes.Tq, kSizes.Tk] };
      assertClose(attend(q, k, v, { attnMask: ones }).output, output, { absolute: 1e-6 });
      const open = { windowSize: [200, 200], queryOffset: 0 };
      assertClose(attend(q, k, v, open).output, output, { absolute: 1e-6 });
    });

    test('merging attention over parts of the keys equals attention over all, in any order and grouping', () => {
      for (const Tq of [1, 37]) {
        const { g, q, k, v } = tensors(`merge ${Tq}`, { Tq });
        const part = (from, to) => attend(q, slice(k, 2, from, to), slice(v, 2, from, to), { returnLse: true });
        const [a, b, c, none] = [part(0, 13), part(13, 14), part(14, 101), part(5, 5)];
        const whole = attend(q, k, v, { returnLse: true });
        const merge = (...parts) => attention.mergeAttention(parts);
        const orders = [
          ...[merge(a, b, c), merge(c, a, b), merge(merge(a, b), c), merge(a, merge(b, c))],
          ...[merge(none, a, b, none, c), merge(merge(none, a), merge(b, none, c))],
        ];
        for (const merged of orders) {
          assertClose(merged.output, whole.output, { absolute: 1e-6, what: 'merged output' });
          assertClose(merged.lse, whole.lse, { absolute: 1e-6, what: 'merged lse' });
        }
        assertSameBits(merge(a, none).output, a.output, 'an empty part changes');
        assertSameBits(merge(none, none).output, none.output, 'two empty parts');
        assertSameBits(merge(none, none).lse, none.lse, 'lse of two empty parts');
        const sinks = g.tensor([kSizes.H]).data;
        const sunk = attend(q, k, v, { returnLse: true, sinks });
        const mergedWithSink = attention.mergeAttention([a, b, c], { sinks });
        assertClose(mergedWithSink.output, sunk.output, { absolute: 1e-6, what: 'merged output with sinks' });
        assertClose(mergedWithSink.lse, sunk.lse, { absolute: 1e-6, what: 'merged lse with sinks' });
      }
    });

    test('scores of rotated queries and keys depend on their distance only', () => {
      for (const style of ['interleaved', 'half']) {
        const g = random(seedOf(style));
        const [q, k, v] = [g.tensor([1, 3, 1, 32]), g.tensor([1, 3, 1, 32]), g.tensor([1, 3, 1, 4])];
        const score = (p, distance) => {
          const turned = attention.rope(q, { style, offset: p });
          return attend(turned, attention.rope(k, { style, offset: p - distance }), v, { returnLse: true }).lse;
        };
        for (const distance of [0, 1, 17]) {
          for (const p of [18, 400, 100000]) {
            assertClose(score(p, distance), score(17, distance), { absolute: 2e-6, what: `${style} at ${p}` });
          }
        }
      }
    });

    test('the inverse rotation takes the rotation back', () => {
      const x = random(7).tensor([2, 3, 5, 24]);
      for (const style of ['interleaved', 'half']) {
        const turned = attention.rope(x, { style, offset: 1000, rotaryDim: 16 });
        assertClose(attention.rope(turned, { style, offset: 1000, rotaryDim: 16, inverse: true }), x, {
          absolute: 1e-6,
        });
      }
    });

    test('an instance gives the same bits twice', () => {
      for (const { q, k, v, options } of attentionCases.filter((_, n) => n % 7 === 0)) {
        assertSameBits(attend(q, k, v, options).output, attend(q, k, v, options).output);
      }
    });
  });
}

/** Calls that are large enough to be shared among threads, beside those of the table. */
const sharedCalls = [
  attentionCase('prefill', { B: 2, H: 6, Hkv: 3, Tq: 200, Tk: 200, D: 40, Dv: 36 }, { isCausal: true }),
  attentionCase('decode, many chunks', { B: 2, H: 6, Hkv: 2, Tq: 3, Tk: 5000, D: 40, Dv: 36 }),
  attentionCase(
    'one head',
    { B: 1, H: 1, Hkv: 1, Tq: 900, Tk: 301, D: 33, Dv: 65 },
    { windowSize: [90, 60], queryOffset: -200 },
  ),
];

test('threads change no bit', async () => {
  for (const threaded of builds().filter((name) => name.endsWith('-mt'))) {
    const [one, many] = await Promise.all([threaded.replace('-mt', ''), threaded].map((name) => loadBuild(name)));
    assert.ok(many.info.threads > 1);
    const g = random(9);
    const [x, weight] = [g.tensor([300, 250]), g.tensor([200, 250])];
    for (let repeat = 0; repeat < 5; ++repeat) {
      for (const { name, q, k, v, options } of [...sharedCalls, ...(repeat ? [] : attentionCases)]) {
        const all = { ...options, returnLse: true };
        const [want, got] = [one, many].map((each) => each.scaledDotProductAttention(q, k, v, all));
        assertSameBits(got.output, want.output, `${threaded}, ${name}: output`);
        assertSameBits(got.lse, want.lse, `${threaded}, ${name}: lse`);
        if (want.weights) assertSameBits(got.weights, want.weights, `${threaded}, ${name}: weights`);
      }
      assertSameBits(many.linear(x, weight), one.linear(x, weight), `${threaded}: linear`);
    }
  }
});

test('every build agrees with the first', async () => {
  const [first, ...others] = await Promise.all(builds().map((name) => loadBuild(name)));
  for (const { name, q, k, v, options, outputType } of attentionCases) {
    const relative = { float32: 0, float16: 2 ** -10, bfloat16: 2 ** -7 }[outputType];
    const want = first.scaledDotProductAttention(q, k, v, options).output;
    for (const other of others) {
      const got = other.scaledDotProductAttention(q, k, v, options).output;
      assertClose(got, want, { absolute: 1e-5, relative, what: `${name}, ${other.info.simd}` });
    }
  }
});
