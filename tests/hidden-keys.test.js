// Rows that see nothing, and whatever stands in hidden keys and values: neither may leave a trace.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { expand, fieldSizes, tensors } from './support/field.js';
import { attention as oracle } from './support/oracle.js';
import { assertClose, assertNoNaN, assertSameBits, edit, slice } from './support/tensors.js';

const kHidden = Number.NEGATIVE_INFINITY;

for (const build of builds()) {
  const attention = await loadBuild(build);
  const attend = (...call) => attention.scaledDotProductAttention(...call);

  describe(`hidden keys and empty rows, ${build}`, () => {
    test('A-001: rows that see nothing are exactly 0, and their weights too', () => {
      for (const s of fieldSizes) {
        const { g, q, k, v } = tensors('A-001', s);
        const last = s.Tq - 1;
        const everyRow = Array.from({ length: s.Tq }, (_, i) => i);
        const groups = {
          'row 1': (_b, _h, i) => i === 1,
          'first row': (_b, _h, i) => i === 0,
          'last row': (_b, _h, i) => i === last,
          'half of the rows': (_b, _h, i) => i % 2 === 1,
          'every row': () => true,
          'a head': (_b, h) => h === 1,
          'an item': (b) => b === 1,
        };
        const base = g.booleans([s.B, s.H, s.Tq, s.Tk], 0.7).data;
        for (const [name, isEmpty] of Object.entries(groups)) {
          const at = (n) => [
            Math.floor(n / s.Tk / s.Tq / s.H),
            Math.floor(n / s.Tk / s.Tq) % s.H,
            Math.floor(n / s.Tk) % s.Tq,
          ];
          const attnMask = { data: base.map((bit, n) => (isEmpty(...at(n)) ? 0 : bit)), shape: [s.B, s.H, s.Tq, s.Tk] };
          const { output, weights, lse } = attend(q, k, v, { attnMask, needWeights: true, returnLse: true });
          const fused = attend(q, k, v, { attnMask });
          const kept = everyRow.filter((i) => !isEmpty(0, 0, i));
          for (let row = 0; row < lse.data.length; ++row) {
            if (!isEmpty(...at(row * s.Tk))) continue;
            assert.ok(
              output.data.subarray(row * s.Dv, (row + 1) * s.Dv).every((x) => x === 0),
              `${name}: output`,
            );
            assert.ok(
              fused.output.data.subarray(row * s.Dv, (row + 1) * s.Dv).every((x) => x === 0),
              `${name}: fused`,
            );
            assert.ok(
              weights.data.subarray(row * s.Tk, (row + 1) * s.Tk).every((x) => x === 0),
              `${name}: weights`,
            );
            assert.equal(lse.data[row], kHidden, `${name}: lse`);
          }
          for (const i of kept) {
            const rowMask = slice(attnMask, 2, i, i + 1);
            const alone = attend(slice(q, 2, i, i + 1), k, v, { attnMask: rowMask }).output;
            assertClose(slice(output, 2, i, i + 1), alone, { absolute: 1e-6, what: `${name}: row ${i}` });
          }
        }
      }
    });

    test('A-001: an empty row with a sink has lse = sink', () => {
      const { q, k, v } = tensors('A-001 sink', fieldSizes[0]);
      const sinks = Float32Array.of(0.5, -2, kHidden);
      const attnMask = { data: Uint8Array.of(0), shape: [1] };
      const { output, weights, lse } = attend(q, k, v, { attnMask, sinks, needWeights: true, returnLse: true });
      assert.ok(output.data.every((x) => x === 0) && weights.data.every((x) => x === 0));
      lse.data.forEach((value, row) => {
        assert.equal(value, sinks[Math.floor(row / 4) % 3]);
      });
    });

    test('A-002: a hidden head gives the same on the path with weights and the one without', () => {
      for (const s of fieldSizes) {
        const { g, q, k, v } = tensors('A-002', s);
        const attnMask = g.booleans([s.H, s.Tq, s.Tk], 0.5);
        attnMask.data.fill(0, s.Tq * s.Tk, 2 * s.Tq * s.Tk);
        const withWeights = attend(q, k, v, { attnMask, needWeights: true });
        const without = attend(q, k, v, { attnMask });
        assertNoNaN(withWeights.output);
        assertNoNaN(withWeights.weights);
        assertNoNaN(without.output);
        assertClose(without.output, withWeights.output, { absolute: 1e-6 });
      }
    });

    test('A-005: NaN, infinity and 1e38 in hidden keys and values change no bit', () => {
      for (const s of fieldSizes) {
        const { g, q, k, v } = tensors('A-005', s);
        const keys = g.booleans([s.Tk], 0.5).data;
        keys[s.Tk - 1] = 0;
        keys[0] = 1;
        const valid = Math.floor(s.Tk / 2) + 1;
        const causal = { isCausal: 'top-left' };
        const ways = {
          boolean: [{ attnMask: { data: keys, shape: [s.Tk] } }, (j) => !keys[j]],
          'boolean per row': [
            { attnMask: expand({ data: keys, shape: [s.Tk] }, [1, s.H, s.Tq, s.Tk]) },
            (j) => !keys[j],
          ],
          additive: [
            { attnMask: { data: Float32Array.from(keys, (bit) => (bit ? 0.5 : kHidden)), shape: [s.Tk] } },
            (j) => !keys[j],
          ],
          causal: [causal, (j) => j >= s.Tq],
          'causal with softcap and ALiBi': [{ ...causal, softcap: 2, alibiSlopes: true }, (j) => j >= s.Tq],
          lengths: [{ keyLengths: new Int32Array(s.B).fill(valid) }, (j) => j >= valid],
          window: [{ windowSize: [1, 0], queryOffset: 2 }, (j) => j < 1 || j >= s.Tq + 2],
        };
        for (const [name, [options, isHidden]] of Object.entries(ways)) {
          const withHidden = (x, value) =>
            edit(x, (data) => {
              const size = x.shape[3];
              for (let row = 0; row * size < data.length; ++row)
                if (isHidden(row % s.Tk)) data.fill(value, row * size, (row + 1) * size);
            });
          const call = (value) =>
            attend(q, withHidden(k, value), withHidden(v, value), { ...options, needWeights: true, returnLse: true });
          const fused = (value) => attend(q, withHidden(k, value), withHidden(v, value), options).output;
          const clean = call(0);
          const cleanFused = fused(0);
          assertNoNaN(clean.output);
          for (const value of [Number.NaN, Number.POSITIVE_INFINITY, kHidden, 1e38, -1e38]) {
            const spoilt = call(value);
            assertSameBits(spoilt.output, clean.output, `${name}, ${value}: output`);
            assertSameBits(spoilt.weights, clean.weights, `${name}, ${value}: weights`);
            assertSameBits(spoilt.lse, clean.lse, `${name}, ${value}: lse`);
            assertSameBits(fused(value), cleanFused, `${name}, ${value}: fused output`);
          }
        }
      }
    });

    test('A-005: a NaN that is attended shows in the rows that see it, and only there', () => {
      for (const s of fieldSizes) {
        const { q, k, v } = tensors('A-005 attended', s);
        const at = 2;
        const spoil = (x) =>
          edit(x, (data) => {
            data[at * x.shape[3]] = Number.NaN; // item 0, head 0, key `at`, channel 0
          });
        const options = { isCausal: 'top-left' };
        const clean = attend(q, k, v, options).output;
        const keySpoilt = attend(q, spoil(k), v, options).output;
        const valueSpoilt = attend(q, k, spoil(v), options).output;
        clean.data.forEach((want, n) => {
          const row = Math.floor(n / s.Dv);
          const sees = row < s.Tq && row >= at;
          const where = `row ${row}, channel ${n % s.Dv}`;
          assert.ok(sees ? Number.isNaN(keySpoilt.data[n]) : Object.is(keySpoilt.data[n], want), `key, ${where}`);
          const sees0 = sees && n % s.Dv === 0;
          assert.ok(
            sees0 ? Number.isNaN(valueSpoilt.data[n]) : Object.is(valueSpoilt.data[n], want),
            `value, ${where}`,
          );
        });
      }
    });

    test('A-005: whole tiles and leading blocks that are hidden change nothing', () => {
      const { q, k, v } = tensors('A-005 tiles', { H: 2, Tq: 40, Tk: 256, D: 12, Dv: 5 });
      for (const hidden of [
        [0, 64],
        [64, 128],
        [0, 128],
        [192, 256],
        [32, 192],
        [0, 255],
        [1, 256],
      ]) {
        const keys = new Uint8Array(256).fill(1).fill(0, ...hidden);
        const options = { attnMask: { data: keys, shape: [256] }, returnLse: true };
        const spoil = (x) =>
          edit(x, (data) => {
            const D = x.shape[3];
            for (let h = 0; h < 2; ++h) data.fill(Number.NaN, (h * 256 + hidden[0]) * D, (h * 256 + hidden[1]) * D);
          });
        for (const rows of [1, 4, 40]) {
          const part = slice(q, 2, 0, rows);
          const got = attend(part, spoil(k), spoil(v), options);
          const want = oracle(part, k, v, options);
          assertClose(got.output, want.output, { what: `keys ${hidden} hidden` });
          assertClose(got.lse, want.lse, { what: `keys ${hidden} hidden: lse` });
        }
      }
    });

    test('a NaN in a query shows in its own row only', () => {
      for (const s of fieldSizes) {
        const { q, k, v } = tensors('query NaN', s);
        const row = 1;
        const spoilt = edit(q, (data) => {
          data[row * s.D] = Number.NaN;
        });
        const [clean, got] = [q, spoilt].map((x) => attend(x, k, v).output);
        clean.data.forEach((want, n) => {
          const own = Math.floor(n / s.Dv) === row;
          assert.ok(own ? Number.isNaN(got.data[n]) : Object.is(got.data[n], want), `row ${Math.floor(n / s.Dv)}`);
        });
      }
    });

    test('rows past queryLengths are 0 whatever stands in them', () => {
      for (const s of fieldSizes) {
        const { q, k, v } = tensors('query lengths', s);
        const queryLengths = Int32Array.of(1, s.Tq - 1);
        const isPast = (row) => row % s.Tq >= queryLengths[Math.floor(row / s.Tq / s.H)];
        const spoilt = edit(q, (data) => {
          for (let row = 0; row < s.B * s.H * s.Tq; ++row)
            if (isPast(row)) data.fill(Number.NaN, row * s.D, (row + 1) * s.D);
        });
        const options = { queryLengths, needWeights: true, returnLse: true };
        const got = attend(spoilt, k, v, options);
        const want = oracle(q, k, v, options);
        assertClose(got.output, want.output, { what: 'output' });
        assertClose(got.weights, want.weights, { what: 'weights' });
        assertClose(got.lse, want.lse, { what: 'lse' });
      }
    });
  });
}
