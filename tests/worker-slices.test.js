// Long calls in a worker run in slices: the same bits, and nothing stays behind.

import './support/sources.js';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { contextOf } from '../bindings/instances.js';
import { watch } from '../bindings/worker-slices.js';
import { loadBuild } from './support/builds.js';
import { random } from './support/random.js';

const g = random(95);

/** Calls that are cut into slices: options for [B, H, T, D] on fewer key/value heads. */
const kSliced = {
  plain: {},
  causal: { isCausal: true },
  'a window': { windowSize: [100, 3] },
  'lengths, sinks, ALiBi, log-sums': {
    ...{ queryLengths: [600, 333], keyLengths: [600, 500], sinks: Float32Array.of(1, -1, 0, 2, 0.5, 3) },
    ...{ alibiSlopes: true, queryOffset: [0, 3], returnLse: true },
  },
  'a mask of rows and keys': { attnMask: { data: maskOf(601 * 601), shape: [601, 601] }, returnLse: true },
  'an additive mask': { attnMask: { data: g.tensor([601, 601]).data, shape: [601, 601] } },
  'chosen weights': { needWeights: { rows: [0, 600] }, softcap: 5 },
  bthd: { layout: 'bthd', isCausal: true, returnLse: true },
};
function maskOf(count) {
  return Uint8Array.from({ length: count }, (_, i) => (i * 7919) % 5 && 1);
}

describe('slices', () => {
  for (const build of ['baseline', 'baseline-mt']) {
    test(`change no bit, ${build}`, async () => {
      const whole = await loadBuild(build);
      const cut = await loadBuild(build);
      let slices = 0;
      watch(contextOf('test', cut).backend, { isStopped: () => false, report: () => ++slices });
      const { allocated } = cut.memory;
      const compare = (name, call, least) => {
        slices = 0;
        assert.deepEqual(call(cut), call(whole), name);
        assert(slices > least, `${name}: ${slices} reports`);
        assert.equal(cut.memory.allocated, allocated, name);
      };
      for (const [name, more] of Object.entries(kSliced)) {
        const shape = (H, D) => (more.layout ? [2, 601, H, D] : [2, H, 601, D]);
        const [lq, lk, lv] = [g.tensor(shape(6, 40)), g.tensor(shape(3, 40)), g.tensor(shape(3, 56))];
        compare(name, (a) => a.scaledDotProductAttention(lq, lk, lv, more), 3);
      }
      const packed = g.tensor([1500, 4, 40]);
      const sequences = { cuSeqlensQ: [0, 700, 1500], cuSeqlensK: [0, 700, 1500], isCausal: true, returnLse: true };
      compare('packed', (a) => a.varlenAttention(packed, packed, packed, sequences), 2);
      const half = { data: g.tensor([1, 2, 1501, 64]).data, shape: [1, 2, 1501, 64] };
      const bits = { data: Uint16Array.from(half.data, (value) => (value < 0 ? 0xb800 : 0x3800)), shape: half.shape };
      compare('float16', (a) => a.scaledDotProductAttention(bits, bits, bits, { isCausal: true }), 2);
      for (const dtype of ['float32', 'float16', 'int8', 'q4_0']) {
        compare(
          `a cache of ${dtype}`,
          (a) => {
            const cache = a.keyValueCache({ numKvHeads: 2, headDim: 64, capacity: 1600, dtype, window: 1500 });
            cache.append(half, half);
            const result = cache.attend(half, { returnLse: true });
            cache.dispose();
            return result;
          },
          2,
        );
      }
      const weight = g.tensor([512, 512]);
      const rows = g.tensor([1501, 512]);
      compare(
        'linear',
        (a) => {
          const layer = a.packLinear(weight, new Float32Array(512).fill(1));
          const result = a.linear(rows, layer, null, { residual: rows });
          layer.dispose();
          return result;
        },
        2,
      );
    });
  }
});
