// Failures that users of other attention code met, as tests of the whole kind: masks and softmax. Hidden keys and empty rows are in
// hidden-keys.test.js.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { column, errorNaming, expand, fieldSizes, tensors } from './support/field.js';
import { attention as oracle } from './support/oracle.js';
import { random } from './support/random.js';
import { assertClose, assertSameBits, cast, edit, slice } from './support/tensors.js';

const kHidden = Number.NEGATIVE_INFINITY;

for (const build of builds()) {
  const attention = await loadBuild(build);
  const attend = (...call) => attention.scaledDotProductAttention(...call);

  describe(`masks and softmax, ${build}`, () => {
    test('A-007: true means attend, in the function and in the module', () => {
      const q = { data: new Float32Array(2), shape: [1, 1, 2, 1] };
      const k = column([0, 0, 0]);
      const v = column([1, 2, 4]);
      const attnMask = { data: Uint8Array.of(1, 1, 0, 0, 1, 1), shape: [2, 3] };
      assertClose(attend(q, k, v, { attnMask }).output, column([1.5, 3]));
      const mha = attention.multiHeadAttention({ dModel: 1, numHeads: 1 });
      const one = { data: Float32Array.of(1), shape: [1, 1] };
      const zero = { data: Float32Array.of(0), shape: [1, 1] };
      mha.loadStateDict({ 'q_proj.weight': zero, 'k_proj.weight': zero, 'v_proj.weight': one, 'out_proj.weight': one });
      const x = { data: Float32Array.of(1, 2), shape: [1, 2, 1] };
      const context = { data: Float32Array.of(1, 2, 4), shape: [1, 3, 1] };
      assertClose(mha.forward(x, { context, attnMask }).output.data, [1.5, 3]);
      mha.dispose();
    });

    test('A-007: keyLengths equal the key-padding mask of the same lengths', () => {
      const { q, k, v } = tensors('A-007 padding', { B: 4, H: 2, Tq: 3, Tk: 5, D: 6, Dv: 7 });
      const keyLengths = Int32Array.of(5, 4, 1, 0);
      const padding = Uint8Array.from({ length: 20 }, (_, n) => (n % 5 < keyLengths[Math.floor(n / 5)] ? 1 : 0));
      const masked = attend(q, k, v, { attnMask: { data: padding, shape: [4, 1, 1, 5] } }).output;
      assertSameBits(attend(q, k, v, { keyLengths }).output, masked);
      assert.ok(slice(masked, 0, 3, 4).data.every((x) => x === 0));
    });

    test('A-008: a float mask of 0 and 1 is added; bytes other than 0 are true; other integers are refused', () => {
      const { q, k, v } = tensors('A-008', fieldSizes[0]);
      const bits = Array.from({ length: 24 }, (_, n) => (n % 3 === 0 ? 0 : 1));
      const shape = [4, 6];
      const float = { attnMask: { data: Float32Array.from(bits), shape } };
      const bytes = { attnMask: { data: Uint8Array.from(bits), shape } };
      const others = { attnMask: { data: Uint8Array.from(bits, (bit, n) => (bit ? 1 + (n % 255) : 0)), shape } };
      assertClose(attend(q, k, v, float).output, oracle(q, k, v, float).output);
      assertClose(attend(q, k, v, bytes).output, oracle(q, k, v, bytes).output);
      assertSameBits(attend(q, k, v, others).output, attend(q, k, v, bytes).output);
      for (const Type of [Int32Array, Uint32Array, Int8Array, Float64Array]) {
        const attnMask = { data: Type.from(bits), shape };
        assert.throws(() => attend(q, k, v, { attnMask }), errorNaming('INVALID_DTYPE', 'attnMask'));
      }
    });

    test('A-009: a small additive bias is not a boolean mask', () => {
      for (const s of fieldSizes) {
        const { g, q, k, v } = tensors('A-009', s);
        const options = { attnMask: g.tensor([s.B, s.H, s.Tq, s.Tk], 0.1) };
        const want = oracle(q, k, v, options);
        assertClose(attend(q, k, v, options).output, want.output);
        const slow = attend(q, k, v, { ...options, needWeights: true });
        assertClose(slow.output, want.output);
        assertClose(slow.weights, want.weights);
      }
    });

    test('A-011: large logits stay finite', () => {
      for (const largest of [151.3, 1e4]) {
        for (const filler of [1, 70]) {
          const k = column([151.3, -151.3, 0, 1e4, ...new Array(filler).fill(-3)].filter((x) => x <= largest));
          const v = column(Array.from({ length: k.data.length }, (_, n) => n + 1));
          const winner = k.data.indexOf(Math.fround(largest));
          const { output, weights } = attend(column([1]), k, v, { scale: 1, needWeights: true });
          assertClose(output, column([winner + 1]));
          assert.equal(weights.data[winner], 1);
        }
      }
      const k = column(new Array(67).fill(1e4));
      const v = column(Array.from({ length: 67 }, (_, n) => n / 67));
      const { output, weights } = attend(column([1]), k, v, { scale: 1, needWeights: true });
      assertClose(output, column([33 / 67]));
      assertClose(weights.data, new Float32Array(67).fill(1 / 67));
    });

    test('A-013: the softcap comes before every kind of mask', () => {
      const q = column([0]);
      const v = column([1, 100]);
      const one = { softcap: 1, scale: 1 };
      const ways = [
        { attnMask: { data: Uint8Array.of(1, 0), shape: [1, 2] } },
        { attnMask: { data: Float32Array.of(0, kHidden), shape: [1, 2] } },
        { isCausal: 'top-left' },
        { windowSize: [-1, 0], queryOffset: 0 },
        { keyLengths: Int32Array.of(1) },
      ];
      for (const way of ways) {
        assertClose(attend(q, column([0, 0]), v, { ...one, ...way }).output, column([1]));
        assertClose(attend(q, column([0, 0]), v, { ...one, ...way, needWeights: true }).weights.data, [1, 0]);
      }
    });

    test('A-015: every length near a block edge, where padded zeros would win', () => {
      const g = random(15);
      const [D, Dv] = [6, 5];
      const q = { data: new Float32Array(20 * D).fill(2), shape: [1, 1, 20, D] };
      const k = edit(g.tensor([1, 1, 70, D]), (data) => data.set(data.map((x) => -4 + 0.1 * x)));
      const v = g.tensor([1, 1, 70, Dv]);
      const attnMask = g.booleans([20, 70], 0.8);
      const whole = oracle(q, k, v).stage('scores').data;
      assert.ok(whole.every((score) => score < -15 && score > -25));
      for (let Tk = 1; Tk <= 70; ++Tk) {
        const [keys, values] = [slice(k, 2, 0, Tk), slice(v, 2, 0, Tk)];
        const cut = slice(attnMask, 1, 0, Tk);
        const plain = oracle(q, keys, values).output;
        const masked = oracle(q, keys, values, { attnMask: cut }).output;
        for (let Tq = 1; Tq <= 20; ++Tq) {
          const rows = slice(q, 2, 0, Tq);
          const rowMask = slice(cut, 0, 0, Tq);
          assertClose(attend(rows, keys, values).output, slice(plain, 2, 0, Tq), { what: `${Tq} × ${Tk}` });
          const got = attend(rows, keys, values, { attnMask: rowMask }).output;
          assertClose(got, slice(masked, 2, 0, Tq), { what: `${Tq} × ${Tk} masked` });
        }
      }
    });

    test('A-016: the default scale is 1/√D; 0 is 0, NaN is refused, a negative one holds', () => {
      const { q, k, v } = tensors('A-016', fieldSizes[0]);
      const standard = attend(q, k, v, { scale: 1 / Math.sqrt(5) }).output;
      for (const options of [undefined, {}, { scale: undefined }, { scale: null }]) {
        assertSameBits(attend(q, k, v, options).output, standard);
      }
      const uniform = attend(q, k, v, { scale: 0, needWeights: true }).weights;
      assertClose(uniform.data, new Float32Array(uniform.data.length).fill(1 / 6));
      assertClose(attend(q, k, v, { scale: -0.7 }).output, oracle(q, k, v, { scale: -0.7 }).output);
      for (const scale of [Number.NaN, Number.POSITIVE_INFINITY, '1']) {
        assert.throws(() => attend(q, k, v, { scale }), errorNaming('INVALID_OPTION', 'scale'));
      }
    });

    test('A-018: the value head size may differ from the query’s', () => {
      for (const Dv of [24, 40]) {
        const { q, k, v } = tensors(`A-018 ${Dv}`, { B: 2, H: 3, Tq: 5, Tk: 7, D: 32, Dv });
        const { output } = attend(q, k, v);
        assert.deepEqual([...output.shape], [2, 3, 5, Dv]);
        assertClose(output, oracle(q, k, v, { scale: 1 / Math.sqrt(32) }).output);
      }
    });

    test('A-019: causal and an explicit mask are both applied', () => {
      const { g, q, k, v } = tensors('A-019', { B: 2, H: 3, Tq: 70, Tk: 70, D: 8, Dv: 6 });
      const padding = g.booleans([2, 1, 1, 70], 0.8);
      const bias = g.tensor([70, 70]);
      const bare = attend(q, k, v).output;
      const causal = attend(q, k, v, { isCausal: true }).output;
      assert.notDeepEqual(causal.data, bare.data);
      for (const attnMask of [undefined, padding, bias]) {
        const options = { isCausal: true, attnMask };
        assertClose(attend(q, k, v, options).output, oracle(q, k, v, options).output);
      }
    });

    test('A-021: all sixteen ways to broadcast a mask equal the expanded mask', () => {
      const full = [2, 3, 5, 7];
      const { g, q, k, v } = tensors('A-021', { B: 2, H: 3, Tq: 5, Tk: 7, D: 4, Dv: 6 });
      for (let pattern = 0; pattern < 16; ++pattern) {
        const shape = full.map((size, axis) => (pattern & (1 << axis) ? size : 1));
        for (const attnMask of [g.booleans(shape), g.tensor(shape)]) {
          const expanded = attend(q, k, v, { attnMask: expand(attnMask, full) }).output;
          assertSameBits(attend(q, k, v, { attnMask }).output, expanded, `mask [${shape}]`);
        }
      }
      for (const shape of [[7, 5], [2, 5, 7], [2, 2, 5, 7], [1, 2, 3, 5, 7], [6], [0]]) {
        const attnMask = g.booleans(shape);
        assert.throws(() => attend(q, k, v, { attnMask }), errorNaming('INVALID_SHAPE', 'attnMask', shape.join(', ')));
      }
    });

    test('A-022: a mask of rank 3 is [H, Tq, Tk], whatever B is', () => {
      for (const B of [3, 2]) {
        const { g, q, k, v } = tensors(`A-022 ${B}`, { B, H: 3, Tq: 4, Tk: 6, D: 5, Dv: 7 });
        const attnMask = g.booleans([3, 4, 6], 0.5);
        const perHead = { data: attnMask.data, shape: [1, 3, 4, 6] };
        assertSameBits(attend(q, k, v, { attnMask }).output, attend(q, k, v, { attnMask: perHead }).output);
        assertClose(attend(q, k, v, { attnMask }).output, oracle(q, k, v, { attnMask: perHead }).output);
      }
    });

    test('A-022: key padding, causal and bias together', () => {
      const { g, q, k, v } = tensors('A-022 together', { B: 3, H: 2, Tq: 4, Tk: 6, D: 5, Dv: 7 });
      const bias = g.tensor([1, 2, 4, 6]);
      const options = { attnMask: bias, keyLengths: Int32Array.of(6, 3, 1), isCausal: 'bottom-right' };
      assertClose(attend(q, k, v, options).output, oracle(q, k, v, options).output);
    });

    test('A-023: float16 scores do not overflow', () => {
      for (const [Tq, Tk] of [
        [1, 9],
        [40, 70],
      ]) {
        const same = (length) =>
          cast({ data: new Float32Array(length * 128).fill(256), shape: [1, 1, length, 128] }, 'float16');
        const v = cast(random(23).tensor([1, 1, Tk, 5]), 'float16');
        const { output, lse } = attend(same(Tq), same(Tk), v, { returnLse: true });
        const want = oracle(same(Tq), same(Tk), v);
        assertClose(output, want.output, { absolute: 1e-5, relative: 2 ** -11 });
        assertClose(lse, want.lse, { relative: 1e-6 });
      }
    });

    test('A-024: there is no dropout to ask for, and weights sum to 1', () => {
      const { q, k, v } = tensors('A-024', fieldSizes[0]);
      for (const name of ['dropout', 'dropoutP', 'dropout_p']) {
        assert.throws(() => attend(q, k, v, { [name]: 0.1 }), errorNaming('INVALID_OPTION', name));
      }
      const { weights } = attend(q, k, v, { needWeights: true });
      for (let row = 0; row < weights.data.length; row += 6) {
        const values = weights.data.subarray(row, row + 6);
        assert.ok(values.every((w) => w >= 0 && w <= 1));
        assert.ok(Math.abs(values.reduce((a, b) => a + b, 0) - 1) <= 1e-6);
      }
    });
  });
}
