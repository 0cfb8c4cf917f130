// Memory is O(T): long sequences run in what their inputs and outputs take, and what can't fit is refused with its size.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { attention as oracle } from './support/oracle.js';
import { random } from './support/random.js';
import { assertClose, slice } from './support/tensors.js';

const kMiB = 2 ** 20;
const [T, D] = [32768, 64];

/** The call made nothing grow and left nothing behind; the allocator may round a block it gives again by some bytes. */
function assertNoGrowth(attention, before) {
  assert.equal(attention.memory.total, before.total);
  assert.ok(attention.memory.allocated <= before.allocated + 64, `${attention.memory.allocated} > ${before.allocated}`);
}

/** Chosen rows of a long call against the oracle, which is given only the keys that they see. */
function assertRows(output, q, k, v, rows, options) {
  for (const row of rows) {
    const from = options.windowSize ? Math.max(0, row - options.windowSize[0]) : 0;
    const keys = [k, v].map((x) => slice(x, 2, from, row + 1));
    const want = oracle(slice(q, 2, row, row + 1), ...keys).output;
    assertClose(slice(output, 2, row, row + 1), want, { what: `row ${row}` });
  }
}

function longTensors() {
  const g = random(32768);
  return [g.tensor([1, 1, T, D]), g.tensor([1, 1, T, D]), g.tensor([1, 1, T, D])];
}

/** An instance whose threads, if it has some, are up: each keeps its stack from its first loop on. */
async function warmInstance(build) {
  const attention = await loadBuild(build);
  const x = random(1).tensor([1, 8, 128, 64]);
  attention.scaledDotProductAttention(x, x, x);
  return attention;
}

/** Fills the module's memory up to `bytes` or a little less, so that a call which needs more has to make it grow. */
function leaveFree(attention, bytes) {
  const free = () => attention.memory.total - attention.memory.allocated;
  if (free() < bytes) attention.tensor(null, [bytes / 4]).dispose(); // makes it grow
  const { total } = attention.memory;
  attention.tensor(null, [Math.floor((free() - bytes) / 4)]);
  assert.equal(attention.memory.total, total, 'the filler itself made the memory grow');
  assert.ok(free() <= bytes);
}

for (const build of builds()) {
  describe(`memory, ${build}`, () => {
    test(`T = ${T}: at most 2 MiB beside inputs and output`, async () => {
      const attention = await warmInstance(build);
      const [q, k, v] = longTensors();
      const resident = [q, k, v].map(({ data, shape }) => attention.tensor(data, shape));
      const out = attention.tensor(null, q.shape);
      leaveFree(attention, 2 * kMiB);
      const before = attention.memory;
      // Half a billion scores take seconds: the best build computes them all, and a narrow window covers the others.
      const isBest = build === builds().at(-1) && attention.info.simd !== 'scalar';
      const causal = isBest ? [{ isCausal: true }] : [];
      for (const options of [{ windowSize: [128, 0], queryOffset: 0 }, ...causal]) {
        attention.scaledDotProductAttention(...resident, { ...options, out });
        assertNoGrowth(attention, before);
        assertRows({ data: out.data.slice(), shape: q.shape }, q, k, v, [0, 1, 129, 20000, T - 1], options);
      }
      attention.dispose();
    });

    test('chosen rows of the weights cost O(rows · Tk)', async () => {
      const attention = await warmInstance(build);
      const [q, k, v] = longTensors();
      const resident = [q, k, v].map(({ data, shape }) => attention.tensor(data, shape));
      const out = attention.tensor(null, q.shape);
      const rows = [0, 8191, T - 1];
      leaveFree(attention, 2 * kMiB + rows.length * T * 4);
      const before = attention.memory;
      const options = { windowSize: [64, 0], queryOffset: 0, needWeights: { rows }, out };
      const { weights } = attention.scaledDotProductAttention(...resident, options);
      assertNoGrowth(attention, before);
      assert.deepEqual([...weights.shape], [1, 1, 3, T]);
      for (const [n, row] of rows.entries()) {
        const seen = weights.data.subarray(n * T, (n + 1) * T);
        assert.ok(Math.abs(seen.reduce((a, b) => a + b, 0) - 1) <= 1e-6);
        assert.ok(seen.every((w, j) => w === 0 || (j >= row - 64 && j <= row)));
      }
      attention.dispose();
    });

    test('full weights that cannot fit are refused with the bytes, and the instance works on', async () => {
      const attention = await loadBuild(build);
      const x = random(1).tensor([1, 1, T, 1]);
      const small = random(2).tensor([1, 1, 3, 4]);
      const used = attention.memory.allocated;
      const call = () => attention.scaledDotProductAttention(x, x, x, { isCausal: true, needWeights: true });
      assert.throws(call, (error) => {
        assert.equal(error.name, 'AttentionError');
        assert.equal(error.code, 'OUT_OF_MEMORY', error.message);
        const bytes = Number(error.message.match(/(\d{6,}) bytes/)?.[1]);
        assert.ok(bytes >= T * T * 4 && bytes < T * T * 4 + 64 * kMiB, error.message);
        return true;
      });
      assert.ok(attention.memory.allocated <= used + 64);
      assertClose(attention.scaledDotProductAttention(small, small, small).output, oracle(small, small, small).output);
      attention.dispose();
    });
  });
}
