// What the types of a cache keep of a value, bit for bit by the definitions of the formats, and what that costs.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { attention as oracle } from './support/oracle.js';
import { cacheTypes, kept, relativeError } from './support/oracle-cache.js';
import { random } from './support/random.js';
import { assertClose, cast } from './support/tensors.js';

/** Values of 32 channels that quantisers get wrong. */
function hardTokens() {
  const g = random(11);
  const filled = (make) => Float32Array.from({ length: 32 }, (_, i) => make(i));
  return {
    zeros: filled(() => 0),
    'negative zeros': filled(() => -0),
    'one negative value, the first': filled((i) => (i === 0 ? -0.5 : 0)),
    'one negative value, the last': filled((i) => (i === 31 ? -3 : 0)),
    'the largest first, and negative': filled((i) => (i === 0 ? -2 : g.normal() / 4)),
    'two largest, the negative one first': filled((i) => (i === 3 ? -1.5 : i === 9 ? 1.5 : g.normal() / 9)),
    'two largest, the positive one first': filled((i) => (i === 3 ? 1.5 : i === 9 ? -1.5 : g.normal() / 9)),
    'halves of a step of 1/127': filled((i) => (i === 0 ? 127 : i - 15.5)),
    'halves of a step of 1/8': filled((i) => (i === 0 ? 8 : (i % 15) - 7.5)),
    'all equal': filled(() => 0.3),
    'a scale below the normal numbers of float16': filled((i) => (i - 11) * 2e-5),
    'a scale below all numbers of float16': filled((i) => (i - 11) * 1e-9),
    'large values': filled((i) => (i - 11) * 1e5),
    'normal values': filled(() => g.normal()),
    'normal values, negative': filled(() => -Math.abs(g.normal())),
  };
}

/** The values of a cache, as they are read: one key is seen by each of eight rows, so that its weight is just 1. */
function readBack(attention, values, dtype) {
  const [Hkv, T, width] = values.shape;
  const cache = attention.keyValueCache({ numKvHeads: Hkv, headDim: 32, valueDim: width, capacity: T, dtype });
  cache.append({ data: new Float32Array(Hkv * T * 32), shape: [Hkv, T, 32] }, values);
  const result = { data: new Float32Array(values.data.length), shape: values.shape };
  for (let first = 0; first < T; first += 8) {
    const attnMask = { data: new Uint8Array(8 * T), shape: [8, T] };
    for (let i = 0; i < 8; ++i) attnMask.data[i * T + Math.min(first + i, T - 1)] = 1;
    const q = { data: new Float32Array(Hkv * 8 * 32), shape: [Hkv, 8, 32] };
    const { output } = cache.attend(q, { isCausal: false, attnMask });
    for (let h = 0; h < Hkv; ++h) {
      for (let i = 0; i < 8 && first + i < T; ++i) {
        const row = output.data.subarray((h * 8 + i) * width, (h * 8 + i + 1) * width);
        result.data.set(row, (h * T + first + i) * width);
      }
    }
  }
  cache.dispose();
  return result;
}

for (const build of builds()) {
  const attention = await loadBuild(build);

  describe(`types of a cache, ${build}`, () => {
    for (const dtype of cacheTypes) {
      test(`${dtype}: hard tokens, and random ones`, () => {
        for (const [name, data] of Object.entries(hardTokens())) {
          const token = { data, shape: [1, 1, 32] };
          const want = kept(token, dtype).data.map(Math.fround);
          assertClose(readBack(attention, token, dtype).data, want, { absolute: 0, what: name });
        }
        for (const width of dtype.startsWith('q') ? [32, 64, 96] : [1, 3, 20, 31, 32, 33, 64, 100]) {
          const values = random(width).tensor([3, 17, width], 2);
          const want = kept(values, dtype).data.map(Math.fround);
          assertClose(readBack(attention, values, dtype).data, want, { absolute: 0, what: `width ${width}` });
        }
      });

      test(`${dtype}: from every type`, () => {
        const values = random(12).tensor([2, 5, 64]);
        for (const from of ['float32', 'float16', 'bfloat16']) {
          const given = cast(values, from);
          const want = kept(given, dtype).data.map(Math.fround);
          assertClose(readBack(attention, given, dtype).data, want, { absolute: 0, what: from });
        }
      });

      test(`${dtype}: what is not finite spoils its own block or token, and no other`, () => {
        const spoilt = dtype.startsWith('q') ? [32, 64] : dtype === 'int8' ? [0, 96] : [40, 41];
        for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
          const values = random(13).tensor([1, 3, 96]);
          const clean = readBack(attention, values, dtype).data;
          values.data[96 + 40] = bad;
          const got = readBack(attention, values, dtype).data;
          for (let i = 0; i < got.length; ++i) {
            const isSpoilt = i >= 96 + spoilt[0] && i < 96 + spoilt[1];
            if (isSpoilt) assert.ok(!Number.isFinite(got[i]), `${bad}: ${i}`);
            else assert.equal(got[i], clean[i], `${bad}: ${i}`);
          }
        }
      });
    }

    // Bytes and 16-bit numbers at their largest, of either sign by turns or all alike, for any count of rows together.
    test('sums of products at their largest', () => {
      const signs = [() => 1, () => -1, (c) => (c % 2 ? 1 : -1), (c) => (c % 2 ? -1 : 1)];
      const extremes = (count, width) => ({
        data: Float32Array.from({ length: count * width }, (_, i) => signs[Math.floor(i / width) % 4](i % width)),
        shape: [1, count, width],
      });
      const v = extremes(37, 64);
      for (const D of [64, 2048, 2080]) {
        const [k, q] = [extremes(37, D), extremes(4, D)];
        for (const dtype of cacheTypes) {
          const cache = attention.keyValueCache({ numKvHeads: 1, headDim: D, valueDim: 64, capacity: 37, dtype });
          cache.append(k, v);
          for (const H of [1, 2, 3, 4]) {
            const rows = { data: q.data.subarray(0, H * D), shape: [H, 1, D] };
            for (const scale of [0, 2 / D]) {
              const want = oracle(rows, kept(k, dtype), kept(v, dtype), { scale }).output;
              const { output } = cache.attend(rows, { scale });
              assertClose(output.data, want.data, { absolute: 2e-4, what: `${dtype}, D ${D}, H ${H}, scale ${scale}` });
            }
          }
          cache.dispose();
        }
      }
    });

    // The figures of the documentation: normal data, D = 64, 500 keys.
    const bounds = { float32: 1e-6, float16: 5e-4, bfloat16: 4e-3, int8: 1.2e-2, q8_0: 1.2e-2, q4_0: 0.15 };
    test('the error against float64 over what was given', (t) => {
      const g = random(14);
      const [k, v] = [g.tensor([2, 500, 64]), g.tensor([2, 500, 64])];
      for (const Tq of [1, 40]) {
        const q = g.tensor([4, Tq, 64]);
        const want = oracle(q, k, v).output;
        for (const dtype of cacheTypes) {
          const cache = attention.keyValueCache({ numKvHeads: 2, headDim: 64, capacity: 500, dtype });
          cache.append(k, v);
          const error = relativeError(cache.attend(q, { isCausal: false }).output, want);
          cache.dispose();
          t.diagnostic(`${build}, Tq = ${Tq}: ${dtype} ${error.toExponential(1)}`);
          assert.ok(error < bounds[dtype], `${dtype}: ${error}`);
        }
      }
    });
  });
}
