// Failures that users of other attention code met, as tests of the whole kind: RoPE and position bias.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ropeFrequencies } from 'attention-wasm';
import { builds, loadBuild } from './support/builds.js';
import { column, errorNaming, tensors } from './support/field.js';
import { attention as oracle } from './support/oracle.js';
import { random } from './support/random.js';
import { assertClose, assertSameBits, cast, slice } from './support/tensors.js';

const styles = ['interleaved', 'half'];
const llama3 = {
  ...{ rope_type: 'llama3', factor: 32, low_freq_factor: 1, high_freq_factor: 4 },
  original_max_position_embeddings: 8192,
};
const yarn = (factor, more) => ({ rope_type: 'yarn', factor, original_max_position_embeddings: 4096, ...more });
const factorOf = (scaling) => ropeFrequencies({ rotaryDim: 64, scaling }).attentionFactor;

test('C-049: llama3 scaling, under both names of its type; an unknown type is an error', () => {
  const unscaled = ropeFrequencies({ rotaryDim: 64, base: 5e5 }).frequencies;
  for (const { rope_type, ...scaling } of [llama3]) {
    for (const typed of [{ rope_type }, { type: rope_type }]) {
      const { frequencies } = ropeFrequencies({ rotaryDim: 64, base: 5e5, scaling: { ...scaling, ...typed } });
      assertSameBits(frequencies.slice(0, 15), unscaled.slice(0, 15));
      const slower = [1.2905479e-3, 4.295568e-4, 9.7082878e-5, 1.9461638e-5];
      assertClose(frequencies.slice(15, 19), slower, { absolute: 0, relative: 1e-7 });
      assertClose([frequencies[31]], [9.4183067e-8], { absolute: 0, relative: 1e-7 });
    }
  }
  const unknown = { rotaryDim: 64, scaling: { rope_type: 'llama4', factor: 2 } };
  assert.throws(() => ropeFrequencies(unknown), errorNaming('INVALID_OPTION', 'llama4'));
});

test('C-051: the attention factor of YaRN is by formula, or as given', () => {
  for (const [factor, want] of [
    [4, 1.1386294],
    [64, 1.4158883],
    [128, 1.485203],
    [1, 1],
    [0.5, 1],
  ]) {
    assertClose([factorOf(yarn(factor))], [want], { absolute: 1e-7, what: `factor ${factor}` });
  }
  assert.equal(factorOf(yarn(128, { attention_factor: 1 })), 1);
  assert.equal(factorOf(yarn(128, { attention_factor: 1.4852 })), 1.4852);
});

test('C-052: mscale and mscale_all_dim are a ratio', () => {
  assert.equal(factorOf(yarn(40, { mscale: 1, mscale_all_dim: 1 })), 1);
  const g = (m) => 0.1 * m * Math.log(40) + 1;
  assertClose([factorOf(yarn(40, { mscale: 0.7, mscale_all_dim: 1 }))], [g(0.7) / g(1)], { absolute: 1e-12 });
});

test('C-054: the base of dynamic NTK grows with the length only beyond the trained one', () => {
  const scaling = { rope_type: 'dynamic', factor: 2, original_max_position_embeddings: 2048 };
  const at = (sequenceLength) => ropeFrequencies({ rotaryDim: 64, scaling, sequenceLength }).frequencies;
  const unscaled = ropeFrequencies({ rotaryDim: 64 }).frequencies;
  for (const length of [0, 1, 2048]) assertSameBits(at(length), unscaled);
  const grown = Array.from({ length: 32 }, (_, i) => 31082.2367 ** (-i / 32));
  assertClose(at(4096), grown, { absolute: 0, relative: 1e-8 });
  const linear = ropeFrequencies({ rotaryDim: 64, scaling: { rope_type: 'linear', factor: 4 }, sequenceLength: 9999 });
  assertClose(
    linear.frequencies,
    unscaled.map((w) => w / 4),
    { absolute: 0, relative: 1e-15 },
  );
});

for (const build of builds()) {
  const attention = await loadBuild(build);
  const attend = (...call) => attention.scaledDotProductAttention(...call);

  describe(`RoPE and position bias, ${build}`, () => {
    test('C-040: the two pairings', () => {
      const x = { data: Float32Array.of(1, 2, 3, 4), shape: [1, 4] };
      const turned = (style) => attention.rope(x, { style, offset: 1 }).data;
      assertClose(turned('interleaved'), [-1.14264, 1.922076, 2.959851, 4.0298], { absolute: 1e-6 });
      assertClose(turned('half'), [-1.984111, 1.959901, 2.462378, 4.019799], { absolute: 1e-6 });
    });

    test('C-042: positions beyond 256 stay apart in float16', () => {
      const x = cast({ data: new Float32Array(8).fill(1), shape: [1, 8] }, 'float16');
      for (const style of styles) {
        const [a, b, c] = [256, 257, 258].map((offset) => attention.rope(x, { style, offset }).data);
        assert.notDeepEqual(a, b);
        assert.notDeepEqual(b, c);
      }
    });

    test('C-044: one token of each item of a batch turns', () => {
      const g = random(44);
      const row = g.tensor([1, 1, 1, 6]);
      const whole = g.tensor([3, 4, 6, 6]);
      const same = { data: new Float32Array(72), shape: [3, 4, 1, 6] };
      for (let n = 0; n < 12; ++n) same.data.set(row.data, n * 6);
      for (const style of styles) {
        const turned = attention.rope(same, { style, offset: 5 });
        for (let n = 1; n < 12; ++n) assert.deepEqual(turned.data.slice(n * 6, n * 6 + 6), turned.data.slice(0, 6));
        const flat = attention.rope({ data: same.data, shape: [12, 1, 6] }, { style, offset: 5 });
        assertSameBits(flat, turned);
        const last = attention.rope(slice(whole, 2, 5, 6), { style, offset: 5 });
        assertSameBits(last, slice(attention.rope(whole, { style }), 2, 5, 6));
      }
    });

    test('C-046: left-padded prompts take positions of their own', () => {
      const { q, k, v } = tensors('C-046', { B: 1, H: 2, Tq: 3, Tk: 3, D: 8, Dv: 5 });
      const pad = (x) => {
        const padded = { data: random(46).tensor([2, 2, 6, x.shape[3]]).data, shape: [2, 2, 6, x.shape[3]] };
        for (let h = 0; h < 2; ++h) padded.data.set(slice(x, 1, h, h + 1).data, (h * 6 + 3) * x.shape[3]);
        return padded;
      };
      const positions = { data: Int32Array.of(0, 0, 0, 0, 1, 2, 0, 1, 2, 3, 4, 5), shape: [2, 6] };
      const attnMask = { data: Uint8Array.of(0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1), shape: [2, 1, 1, 6] };
      const style = 'half';
      const [Q, K] = [q, k].map((x) => attention.rope(pad(x), { style, positions }));
      const padded = attend(Q, K, pad(v), { isCausal: true, attnMask }).output;
      const alone = attend(attention.rope(q, { style }), attention.rope(k, { style }), v, { isCausal: true }).output;
      assertClose(slice(slice(padded, 0, 0, 1), 2, 3, 6), alone);
    });

    test('C-046: and go on decoding from a cache, each at its own position', () => {
      const steps = 4;
      const g = random(460);
      const of = (heads, length) => g.tensor([1, heads, length, 8]);
      const [short, long] = [3, 6].map((T) => ({ T, q: of(4, T + steps), k: of(2, T + steps), v: of(2, T + steps) }));
      const style = 'half';
      const turn = (x, offset) => attention.rope(x, { style, offset });
      const make = (batch) => attention.keyValueCache({ batch, numKvHeads: 2, headDim: 8, capacity: 10 });
      /** Both prompts at once: tokens `from` to `to` of the padded batch, at the positions that the items have there. */
      const both = (name, from, to) => {
        const [, H, , D] = long[name].shape;
        const batch = { data: new Float32Array(2 * H * (to - from) * D), shape: [2, H, to - from, D] };
        for (let h = 0; h < H; ++h) {
          for (let t = from; t < to; ++t) {
            const at = (b) => ((b * H + h) * (to - from) + t - from) * D;
            const row = (x, length, p) => x.data.subarray((h * length + p) * D, (h * length + p + 1) * D);
            if (t >= 3) batch.data.set(row(short[name], 3 + steps, t - 3), at(0));
            else batch.data.fill(9, at(0), at(0) + D);
            batch.data.set(row(long[name], 6 + steps, t), at(1));
          }
        }
        return batch;
      };
      const cache = make(2);
      const alone = make(1);
      for (const [from, to] of [[0, 6], ...Array.from({ length: steps }, (_, n) => [6 + n, 7 + n])]) {
        const data = Int32Array.from({ length: 2 * (to - from) }, (_, n) =>
          n < to - from ? Math.max(from + n - 3, 0) : from + n - (to - from),
        );
        const positions = { data, shape: [2, to - from] };
        const [q, k] = ['q', 'k'].map((name) => attention.rope(both(name, from, to), { style, positions }));
        cache.append(k, both('v', from, to));
        const attnMask = { data: new Uint8Array(2 * to).fill(1).fill(0, 0, 3), shape: [2, 1, 1, to] };
        const { output } = cache.attend(q, { attnMask });
        const start = Math.max(from - 3, 0);
        const part = (x) => slice(x, 2, start, to - 3);
        alone.append(turn(part(short.k), start), part(short.v));
        const want = alone.attend(turn(part(short.q), start)).output;
        assertClose(slice(slice(output, 0, 0, 1), 2, to - from - (to - 3 - start), to - from), want, {
          what: `to ${to}`,
        });
      }
      for (const each of [cache, alone]) each.dispose();
    });

    test('C-047, C-048: partial rotation uses its own width for frequencies and pairs', () => {
      const x = random(47).tensor([2, 3, 5, 8]);
      for (const style of styles) {
        const partial = attention.rope(x, { style, rotaryDim: 4, offset: 3 });
        assertSameBits(slice(partial, 3, 4, 8), slice(x, 3, 4, 8));
        assertSameBits(slice(partial, 3, 0, 4), attention.rope(slice(x, 3, 0, 4), { style, offset: 3 }));
        assertSameBits(attention.rope(x, { style, rotaryDim: 8 }), attention.rope(x, { style }));
        for (const rotaryDim of [3, 10]) {
          assert.throws(() => attention.rope(x, { style, rotaryDim }), errorNaming('INVALID_OPTION', 'rotaryDim'));
        }
      }
    });

    test('C-055: ALiBi slopes of any number of heads', () => {
      // One key at distance 1, score 0: lse of that key alone is minus the slope.
      const slopes = (H) => {
        const zeros = { data: new Float32Array(H), shape: [1, H, 1, 1] };
        const options = { alibiSlopes: true, queryOffset: 1, returnLse: true };
        return attend(zeros, zeros, zeros, options).lse.data.map((x) => -x);
      };
      assertClose(slopes(6), [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8], { absolute: 1e-7 });
      assertClose(
        slopes(12).slice(8),
        [0.5, 1.5, 2.5, 3.5].map((power) => 2 ** -power),
        { absolute: 1e-7 },
      );
      assertClose([slopes(8)[0], slopes(8)[7]], [0.5, 0.00390625], { absolute: 1e-7 });
    });

    test('C-056: one row while decoding has the bias of the last row of all; the distance is absolute', () => {
      const { q, k, v } = tensors('C-056', { H: 8, Tq: 10, Tk: 10, D: 6, Dv: 5 });
      const whole = attend(q, k, v, { alibiSlopes: true, isCausal: true }).output;
      const last = attend(slice(q, 2, 9, 10), k, v, { alibiSlopes: true, isCausal: 'bottom-right' }).output;
      assertClose(last, slice(whole, 2, 9, 10), { absolute: 1e-6 });
      const open = { alibiSlopes: true };
      const bias = Float32Array.from({ length: 800 }, (_, n) => {
        const [h, i, j] = [Math.floor(n / 100), Math.floor(n / 10) % 10, n % 10];
        return -(2 ** -(h + 1)) * Math.abs(i - j);
      });
      const masked = attend(q, k, v, { attnMask: { data: bias, shape: [8, 10, 10] } }).output;
      assertClose(attend(q, k, v, open).output, masked, { absolute: 1e-6 });
    });

    test('C-057: a window counts the tokens besides the row’s own', () => {
      const zeros = column(new Array(6).fill(0));
      const v = column([0, 1, 2, 3, 4, 5]);
      const outputs = (windowSize) => attend(zeros, zeros, v, { isCausal: true, windowSize }).output;
      assertClose(outputs([2, 0]), column([0, 0.5, 1, 2, 3, 4]));
      assertClose(outputs([0, 0]), column([0, 1, 2, 3, 4, 5]));
      assertSameBits(outputs([5, 0]), outputs([-1, -1]));
      assertSameBits(outputs([600, 600]), outputs([-1, -1]));
      for (const windowSize of [[-2, 0], [0, -2], [1.5, 0], [1], 3]) {
        assert.throws(() => outputs(windowSize), errorNaming('INVALID_OPTION', 'windowSize'));
      }
    });

    test('C-059: a sink joins the denominator only', () => {
      const [zero, eight] = [column([0]), column([8])];
      assertClose(attend(zero, zero, eight, { sinks: Float32Array.of(0) }).output, column([4]));
      assertClose(attend(zero, zero, eight, { sinks: Float32Array.of(0), softcap: 1, scale: 7 }).output, column([4]));
      for (const Tq of [1, 40]) {
        const { g, q, k, v } = tensors(`C-059 ${Tq}`, { B: 2, H: 3, Tq, Tk: 70, D: 6, Dv: 5 });
        const sinks = g.tensor([3], 3).data;
        const options = { sinks, needWeights: true, returnLse: true };
        const [got, want] = [attend(q, k, v, options), oracle(q, k, v, options)];
        for (const name of ['output', 'weights', 'lse']) assertClose(got[name], want[name], { what: name });
        const none = { sinks: new Float32Array(3).fill(Number.NEGATIVE_INFINITY) };
        assertSameBits(attend(q, k, v, none).output, attend(q, k, v).output);
      }
    });
  });
}
