// Normalisations and activation functions on every build, within the errors that their documentation states.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { activations, norms as oracles } from './support/oracle-norms.js';
import { random } from './support/random.js';
import {
  assertClose,
  assertSameBits,
  assertUnchanged,
  cast,
  elements,
  remember,
  slice,
  valuesOf,
} from './support/tensors.js';

const optionsOf = { silu: {}, gelu: {}, 'gelu, tanh': { approximate: 'tanh' } };

const widths = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 64, 65, 768, 5000];

/** The largest difference of a row, in units of the row's largest magnitude. */
function rowError(got, want) {
  const width = want.shape.at(-1);
  let worst = 0;
  for (let at = 0; at < want.data.length; at += width) {
    const rows = [got, want].map(({ data }) => data.subarray(at, at + width));
    const largest = rows[1].reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    rows[1].forEach((w, c) => {
      worst = Math.max(worst, Math.abs(rows[0][c] - w) / (largest || 1));
    });
  }
  return worst;
}

for (const build of builds()) {
  const attention = await loadBuild(build);
  const { allocated } = attention.memory;

  describe(`norms, ${build}`, () => {
    for (const name of ['rmsNorm', 'layerNorm']) {
      test(`${name}: every width, weights, biases, epsilon`, (t) => {
        let worst = 0;
        for (const width of widths) {
          const g = random(width);
          const x = g.tensor([3, 5, width], 3);
          const weight = g.tensor([width]).data;
          const bias = name === 'layerNorm' ? g.tensor([width]).data : undefined;
          for (const options of [{}, { weight }, { epsilon: 0.1 }, { weight, ...(bias && { bias }), epsilon: 1e-3 }]) {
            const inputs = remember(x, { data: weight });
            const got = attention[name](x, options);
            const want = oracles[name](x, options);
            assert.deepEqual([...got.shape], x.shape);
            worst = Math.max(worst, rowError(got, want));
            assertUnchanged(inputs);
          }
        }
        t.diagnostic(`${build}: ${name} ${worst.toExponential(1)} of the row's largest`);
        assert.ok(worst <= 4e-7, `${worst}`);
      });

      test(`${name}: rows far from 0, of zeros, tiny and large`, () => {
        const row = random(3).tensor([1, 40]).data;
        for (const change of [
          (v) => 0 * v,
          (v) => v * 1e-4,
          (v) => v * 1e15,
          (v) => 0.25 * v + 2,
          (v) => 0.01 * v + 2000,
        ]) {
          const x = { data: row.map(change), shape: [1, 40] };
          const want = oracles[name](x, {});
          assert.ok(rowError(attention[name](x), want) <= 4e-7, `${change}`);
        }
        // A row of one value: the difference from the mean is 0, not a small number over a smaller one.
        const same = { data: new Float32Array(40).fill(1 / 3), shape: [1, 40] };
        assertClose(attention.layerNorm(same), new Float32Array(40), { absolute: 1e-4 });
      });
    }

    test('softmax: every width; large, hidden and empty rows', (t) => {
      let worst = 0;
      for (const width of widths) {
        const x = random(width).tensor([2, 7, width], 10);
        const got = attention.softmax(x);
        const want = oracles.softmax(x);
        worst = Math.max(worst, ...got.data.map((v, i) => Math.abs(v - want.data[i])));
        for (let at = 0; at < x.data.length; at += width) {
          const sum = got.data.subarray(at, at + width).reduce((a, b) => a + b, 0);
          assert.ok(Math.abs(sum - 1) < 1e-6);
        }
      }
      t.diagnostic(`${build}: softmax ${worst.toExponential(1)}`);
      assert.ok(worst < 1e-6);
      const out = Number.NEGATIVE_INFINITY;
      const hard = { data: Float32Array.of(1e4, 1e4, out, 0, 88, -88, 0, out, out, out, out, out), shape: [3, 4] };
      assertClose(attention.softmax(hard), [0.5, 0.5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], { absolute: 1e-7 });
      const [nan] = attention.softmax({ data: Float32Array.of(Number.NaN, 1), shape: [2] }).data;
      assert.ok(Number.isNaN(nan));
    });
  });

  describe(`activations, ${build}`, () => {
    for (const [name, f] of Object.entries(activations)) {
      const call = (x, more) => attention[name.split(',')[0]](x, { ...optionsOf[name], ...more });

      test(`${name}: within 1e-6 max(1, |x|) everywhere`, (t) => {
        const points = [0, -0, 1e-30, 1e-8, 88, 88.4, 89, 100, 1e4, 1e30, 3e38, -88, -88.4, -89, -100, -1e4, -1e30];
        for (let x = -20; x <= 20; x += 1 / 512) points.push(x);
        const x = { data: Float32Array.from(points), shape: [points.length] };
        const got = call(x);
        let worst = 0;
        x.data.forEach((value, i) => {
          worst = Math.max(worst, Math.abs(got.data[i] - f(value)) / Math.max(1, Math.abs(value)));
        });
        t.diagnostic(`${build}: ${name} ${worst.toExponential(1)} max(1, |x|)`);
        assert.ok(worst < 1e-6, `${worst}`);
        const ends = { data: Float32Array.of(Number.NaN, Number.POSITIVE_INFINITY), shape: [2] };
        assertClose(call(ends), [Number.NaN, Number.POSITIVE_INFINITY]);
      });

      test(`${name}: every length and rank`, () => {
        for (const shape of [[], [0], [1], [3], [4], [5], [2, 3, 4, 5, 1], [4095], [4096], [4097], [3, 4100]]) {
          const x = random(elements(shape)).tensor(shape, 2);
          const got = call(x);
          assert.deepEqual([...got.shape], shape);
          assertClose(got.data, x.data.map(f), { absolute: 1e-6, relative: 1e-6 });
        }
      });
    }

    test('silu with a gate', () => {
      const g = random(4);
      const [x, gate] = [g.tensor([3, 4101], 2), g.tensor([3, 4101], 2)];
      const inputs = remember(x, gate);
      const want = x.data.map((v, i) => activations.silu(v) * gate.data[i]);
      assertClose(attention.silu(x, { gate }).data, want, { absolute: 1e-6, relative: 1e-6 });
      assertUnchanged(inputs);
    });
  });

  describe(`norms and activations alike, ${build}`, () => {
    const calls = {
      rmsNorm: (x, options) => attention.rmsNorm(x, { weight: random(5).tensor([33]), ...options }),
      layerNorm: (x, options) => attention.layerNorm(x, options),
      softmax: (x, options) => attention.softmax(x, options),
      gelu: (x, options) => attention.gelu(x, options),
      silu: (x, options) => attention.silu(x, options),
    };
    for (const [name, call] of Object.entries(calls)) {
      test(`${name}: ranks, half precision, resident tensors, in place`, () => {
        const x = random(6).tensor([2, 3, 33]);
        const want = call(x);
        assert.equal(want.dtype, 'float32');
        for (const shape of [
          [6, 33],
          [2, 1, 3, 33],
        ])
          assertSameBits(call({ data: x.data, shape }).data, want.data);
        assertSameBits(call(slice(x, 0, 1, 2)), slice(want, 0, 1, 2));
        for (const dtype of ['float16', 'bfloat16']) {
          const half = cast(x, dtype);
          const got = call(half);
          assert.equal(got.dtype, dtype);
          const exact = call({ data: Float32Array.from(valuesOf(half)), shape: x.shape });
          assertClose(got, exact, { absolute: 1e-7, relative: dtype === 'float16' ? 2 ** -11 : 2 ** -8 });
          const resident = attention.tensor(half.data, x.shape, dtype);
          assert.equal(call(resident, { out: resident }).data.length, x.data.length);
          assertSameBits(resident.data, got.data);
          resident.dispose();
        }
        const resident = attention.tensor(x.data, x.shape);
        const out = attention.tensor(null, x.shape);
        assert.equal(call(resident, { out }), out);
        assertSameBits(out.data, want.data);
        assertSameBits(resident.data, x.data);
        call(resident, { out: resident });
        assertSameBits(resident.data, want.data);
        for (const tensor of [resident, out]) tensor.dispose();
        for (const shape of [
          [0, 33],
          [2, 0],
        ]) {
          if (shape[1] === 0 && name === 'rmsNorm') continue; // its weight has 33 channels
          assert.deepEqual([...call({ data: new Float32Array(), shape }).shape], shape);
        }
        assert.equal(attention.memory.allocated, allocated);
      });
    }
  });
}
