// rope and ropeFrequencies on every build against the oracle.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ropeFrequencies } from 'attention-wasm';
import { builds, loadBuild } from './support/builds.js';
import { errorNaming } from './support/field.js';
import { ropeFrequencies as frequencyOracle, rope as oracle } from './support/oracle-rope.js';
import { random } from './support/random.js';
import {
  assertClose,
  assertSameBits,
  assertUnchanged,
  cast,
  edit,
  remember,
  slice,
  transpose,
} from './support/tensors.js';

const styles = ['interleaved', 'half'];
const factors = (g, count) => Array.from({ length: count }, () => 1 + 3 * g.uniform());
const g = random(64);

const scalings = {
  default: { rope_type: 'default' },
  linear: { rope_type: 'linear', factor: 4 },
  'linear by its older name': { type: 'linear', factor: 2.5 },
  dynamic: { rope_type: 'dynamic', factor: 2, original_max_position_embeddings: 16 },
  yarn: { rope_type: 'yarn', factor: 8, original_max_position_embeddings: 64 },
  'yarn without rounding': { rope_type: 'yarn', factor: 8, original_max_position_embeddings: 64, truncate: false },
  'yarn with mscales': {
    rope_type: 'yarn',
    factor: 40,
    original_max_position_embeddings: 64,
    mscale: 0.7,
    mscale_all_dim: 1,
  },
  'yarn with its own factor and betas': {
    ...{ rope_type: 'yarn', factor: 4, original_max_position_embeddings: 128 },
    ...{ attention_factor: 1.25, beta_fast: 20, beta_slow: 2 },
  },
  llama3: {
    ...{ rope_type: 'llama3', factor: 8, low_freq_factor: 1, high_freq_factor: 4 },
    original_max_position_embeddings: 64,
  },
  longrope: {
    ...{ rope_type: 'longrope', short_factor: factors(g, 12), long_factor: factors(g, 12) },
    ...{ original_max_position_embeddings: 16, max_position_embeddings: 64 },
  },
  proportional: { rope_type: 'proportional', partial_rotary_factor: 0.5, factor: 2 },
};

test('frequencies of every scaling', () => {
  for (const [name, scaling] of Object.entries(scalings)) {
    for (const sequenceLength of [0, 16, 17, 50]) {
      const options = { rotaryDim: 24, base: 5000, scaling, sequenceLength };
      const got = ropeFrequencies(options);
      const want = frequencyOracle(options);
      assert.equal(got.frequencies.constructor, Float64Array);
      assertClose(got.frequencies, want.frequencies, { absolute: 0, relative: 1e-12, what: name });
      assertClose([got.attentionFactor], [want.attentionFactor], { absolute: 1e-14, what: `${name}: factor` });
    }
  }
});

for (const build of builds()) {
  const attention = await loadBuild(build);

  describe(`rope, ${build}`, () => {
    for (const style of styles) {
      for (const D of [2, 4, 6, 8, 10, 16, 24, 64, 66, 128]) {
        test(`${style}, D = ${D}`, () => {
          for (const [T, offset] of [
            [1, 0],
            [1, 77],
            [5, 3],
            [33, 100],
          ]) {
            const x = random(D).tensor([2, 3, T, D]);
            const inputs = remember(x);
            assertClose(attention.rope(x, { style, offset }), oracle(x, { style, offset }), { absolute: 1e-6 });
            assertUnchanged(inputs);
          }
        });
      }

      test(`${style}: partial rotations pass the other channels bit for bit`, () => {
        for (const D of [8, 37]) {
          const x = random(D).tensor([2, 3, 5, D]);
          for (const rotaryDim of [2, 4, 6]) {
            const got = attention.rope(x, { style, rotaryDim, offset: 9 });
            assertClose(got, oracle(x, { style, rotaryDim, offset: 9 }), { absolute: 1e-6 });
            assertSameBits(slice(got, 3, rotaryDim, D), slice(x, 3, rotaryDim, D));
          }
        }
      });

      test(`${style}: positions, lower ranks, layout, types, in place`, () => {
        const x = random(5).tensor([2, 3, 4, 24]);
        for (const positions of [
          [3, 1, 4, 1],
          Int32Array.of(0, 7, 7, 90000),
          { data: Int32Array.of(0, 1, 2, 3, 9, 8, 7, 6), shape: [2, 4] },
        ]) {
          assertClose(attention.rope(x, { style, positions }), oracle(x, { style, positions }), { absolute: 1e-6 });
        }
        for (const part of [
          slice(x, 0, 1, 2),
          { data: x.data, shape: [6, 4, 24] },
          { data: x.data, shape: [24, 24] },
        ]) {
          assertClose(attention.rope(part, { style, offset: 2 }), oracle(part, { style, offset: 2 }), {
            absolute: 1e-6,
          });
        }
        const swapped = attention.rope(transpose(x, [0, 2, 1, 3]), { style, layout: 'bthd' });
        assertClose(transpose(swapped, [0, 2, 1, 3]), oracle(x, { style }), { absolute: 1e-6 });
        for (const dtype of ['float16', 'bfloat16']) {
          const half = cast(x, dtype);
          const relative = dtype === 'float16' ? 2 ** -11 : 2 ** -8;
          assertClose(attention.rope(half, { style, offset: 5 }), oracle(half, { style, offset: 5 }), {
            absolute: 1e-6,
            relative,
          });
        }
        const resident = attention.tensor(x.data, x.shape);
        attention.rope(resident, { style, offset: 4, out: resident });
        assertClose({ data: resident.data, shape: x.shape }, oracle(x, { style, offset: 4 }), { absolute: 1e-6 });
        resident.dispose();
      });

      test(`${style}: every scaling`, () => {
        const x = random(6).tensor([2, 3, 20, 24]);
        for (const [name, scaling] of Object.entries(scalings)) {
          for (const sequenceLength of [16, 20]) {
            const options = { style, scaling, sequenceLength, base: 5000 };
            assertClose(attention.rope(x, options), oracle(x, options), { absolute: 2e-6, what: name });
          }
        }
      });

      test(`${style}: far positions are as exact as near ones`, () => {
        const x = random(7).tensor([1, 1, 1, 64]);
        for (const offset of [131071, 1000003, 2 ** 31]) {
          assertClose(attention.rope(x, { style, offset }), oracle(x, { style, offset }), { absolute: 1e-6 });
        }
      });

      test(`${style}: tables given`, () => {
        const x = random(8).tensor([2, 3, 5, 12]);
        const { cos, sin } = attention.ropeTables({ rotaryDim: 8, length: 5 });
        const got = attention.rope(x, { style, tables: { cos, sin } });
        assertClose(got, oracle(x, { style, rotaryDim: 8 }), { absolute: 1e-6 });
      });
    }

    test('wrong options are refused', () => {
      const x = random(9).tensor([2, 3, 5, 8]);
      const rope = (options) => () => attention.rope(x, options);
      assert.throws(rope({}), errorNaming('INVALID_OPTION', 'style', 'interleaved', 'half'));
      assert.throws(rope({ style: 'half', rotaryDim: 3 }), errorNaming('INVALID_OPTION', 'rotaryDim'));
      assert.throws(rope({ style: 'half', rotaryDim: 10 }), errorNaming('INVALID_OPTION', 'rotaryDim'));
      assert.throws(rope({ style: 'half', scaling: { rope_type: 'cubic' } }), errorNaming('INVALID_OPTION', 'cubic'));
      assert.throws(rope({ style: 'half', positions: [1, 2] }), errorNaming('INVALID_SHAPE', 'positions'));
      const odd = edit({ ...x, data: x.data.subarray(0, 210), shape: [2, 3, 5, 7] }, () => {});
      assert.throws(() => attention.rope(odd, { style: 'half' }), errorNaming('INVALID_OPTION', 'rotaryDim'));
    });
  });
}
