// precision: 'int8', products of queries and keys in bytes: its error against float64, and that everything else about a
// call stays as it is.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { attention as oracle } from './support/oracle.js';
import { random } from './support/random.js';
import { assertSameBits, edit, valuesOf } from './support/tensors.js';

/** Root of the mean square of the difference, and the largest difference. */
function errors(got, want) {
  const values = valuesOf(got);
  let sum = 0;
  let most = 0;
  values.forEach((value, i) => {
    const difference = Math.abs(value - want.data[i]);
    sum += difference ** 2;
    most = Math.max(most, difference);
  });
  return { rms: Math.sqrt(sum / values.length), most };
}

/** Queries and keys as models have them, and what types.js states of each; the bounds are half as much again. */
const kDistributions = {
  normal: { deviation: 1, outliers: 1, rms: 4e-3, most: 3e-2 },
  'sharp softmax': { deviation: 3, outliers: 1, rms: 6e-2, most: 0.7 },
  'channels that stand out': { deviation: 0.7, outliers: 6, rms: 1e-2, most: 0.15 },
};

function operands(name, [B, H, Hkv, Tq, Tk, D, Dv]) {
  const { deviation, outliers } = kDistributions[name];
  const draw = random(7);
  const q = draw.tensor([B, H, Tq, D], deviation);
  const k = draw.tensor([B, Hkv, Tk, D], deviation);
  for (const { data } of [q, k]) for (let i = 3; i < data.length; i += D) data[i] *= outliers;
  return { q, k, v: draw.tensor([B, Hkv, Tk, Dv]) };
}

for (const build of builds().filter((name) => name.startsWith('relaxed'))) {
  const attention = await loadBuild(build);
  const run = ({ q, k, v }, options) =>
    attention.scaledDotProductAttention(q, k, v, { isCausal: 'bottom-right', precision: 'int8', ...options });

  describe(`bytes, ${build}`, () => {
    for (const [name, { rms, most }] of Object.entries(kDistributions)) {
      test(`error against float64, ${name}`, (t) => {
        const tensors = operands(name, [1, 4, 2, 96, 133, 64, 40]);
        const want = oracle(tensors.q, tensors.k, tensors.v, { isCausal: 'bottom-right' }).output;
        const error = errors(run(tensors).output, want);
        t.diagnostic(`rms ${error.rms.toExponential(1)}, largest ${error.most.toExponential(1)}`);
        assert(error.rms <= rms, `rms ${error.rms}`);
        assert(error.most <= most, `largest ${error.most}`);
        assert(error.rms > 1e-5, 'it was computed in float32');
      });
    }

    test('head sizes that are no multiple of a lane, and grouped heads', () => {
      for (const D of [1, 3, 4, 7, 8, 17, 33]) {
        const tensors = operands('normal', [2, 6, 2, 19, 70, D, 5]);
        const want = oracle(tensors.q, tensors.k, tensors.v, { isCausal: 'bottom-right' }).output;
        assert(errors(run(tensors).output, want).rms < 1e-2, `D = ${D}`);
      }
    });

    test('a NaN in a hidden key changes no bit, and in one that is seen shows in the rows that see it', () => {
      const tensors = operands('normal', [1, 2, 1, 40, 40, 16, 16]);
      const clean = run(tensors).output;
      const k = edit(tensors.k, (data) => data.fill(Number.NaN, 30 * 16, 31 * 16));
      const { data } = run({ ...tensors, k }).output;
      assertSameBits(data.subarray(0, 30 * 16), clean.data.subarray(0, 30 * 16));
      assert(data.subarray(30 * 16, 40 * 16).every(Number.isNaN));
    });

    test('few rows are computed in float32', () => {
      const tensors = operands('normal', [1, 4, 2, 5, 90, 32, 32]);
      assertSameBits(run(tensors).output, run(tensors, { precision: 'float32' }).output);
    });
  });
}

test('builds without the instruction refuse it', async () => {
  const attention = await loadBuild('baseline');
  const x = { data: new Float32Array(64), shape: [16, 4] };
  assert.throws(() => attention.scaledDotProductAttention(x, x, x, { precision: 'int8' }), { code: 'UNSUPPORTED' });
});
