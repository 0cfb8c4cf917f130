// Failures that users of other attention code met, as tests of the whole kind: causal alignment, shapes, layout.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { kHeadSizes } from './support/cases.js';
import { column, errorNaming, fieldSizes, tensors } from './support/field.js';
import { attention as oracle } from './support/oracle.js';
import { multiHeadAttention as layerOracle } from './support/oracle-layers.js';
import { random } from './support/random.js';
import {
  assertClose,
  assertSameBits,
  assertUnchanged,
  elements,
  remember,
  slice,
  transpose,
} from './support/tensors.js';

/** Tensors one after another, joined along the first axis. */
function stack(...parts) {
  const data = new Float32Array(parts.reduce((sum, part) => sum + part.data.length, 0));
  let at = 0;
  for (const part of parts) {
    data.set(part.data, at);
    at += part.data.length;
  }
  return { data, shape: [parts.reduce((sum, part) => sum + part.shape[0], 0), ...parts[0].shape.slice(1)] };
}

for (const build of builds()) {
  const attention = await loadBuild(build);
  const attend = (...call) => attention.scaledDotProductAttention(...call);

  describe(`alignment, shapes and layout, ${build}`, () => {
    test('B-025: both causal alignments, by name; true only where they agree', () => {
      const zeros = (length) => column(new Array(length).fill(0));
      const values = column([0, 1, 2, 3]);
      const outputs = (Tq, options) => attend(zeros(Tq), zeros(4), values, options).output;
      assertClose(outputs(2, { isCausal: 'top-left' }), column([0, 0.5]));
      assertClose(outputs(2, { isCausal: 'bottom-right' }), column([1, 1.5]));
      assertClose(outputs(1, { isCausal: 'bottom-right' }), column([1.5]));
      assertClose(outputs(1, { isCausal: 'top-left' }), column([0]));
      assertClose(outputs(6, { isCausal: 'bottom-right' }), column([0, 0, 0, 0.5, 1, 1.5]));
      assertClose(outputs(6, { isCausal: 'top-left' }), column([0, 0.5, 1, 1.5, 1.5, 1.5]));
      assertClose(outputs(4, { isCausal: true }), column([0, 0.5, 1, 1.5]));
      assertClose(outputs(2, { isCausal: true, queryOffset: 1 }), column([0.5, 1]));
      assertClose(outputs(2, { isCausal: true, queryOffset: -1 }), column([0, 0]));
      const asksForAName = errorNaming('INVALID_OPTION', 'isCausal', 'top-left', 'bottom-right');
      assert.throws(() => outputs(2, { isCausal: true }), asksForAName);
      assert.throws(() => outputs(4, { isCausal: true, keyLengths: Int32Array.of(3) }), asksForAName);
      assert.throws(
        () => outputs(2, { windowSize: [1, 1] }),
        errorNaming('INVALID_OPTION', 'top-left', 'bottom-right'),
      );
      assert.throws(() => outputs(2, { alibiSlopes: true }), errorNaming('INVALID_OPTION', 'top-left', 'bottom-right'));
      assert.throws(() => outputs(2, { isCausal: 'bottom-left' }), errorNaming('INVALID_OPTION', 'isCausal'));
    });

    test('B-027: cross-attention of other length; padding the memory changes nothing', () => {
      const g = random(27);
      const [dModel, numHeads] = [12, 3];
      const state = {};
      for (const name of ['q_proj', 'k_proj', 'v_proj', 'out_proj'])
        state[`${name}.weight`] = g.tensor([dModel, dModel], 0.3);
      const x = g.tensor([2, 4, dModel]);
      const context = g.tensor([2, 7, dModel]);
      const padded = { data: new Float32Array(2 * 12 * dModel).fill(Number.NaN), shape: [2, 12, dModel] };
      for (let b = 0; b < 2; ++b) padded.data.set(slice(context, 0, b, b + 1).data, b * 12 * dModel);
      const mha = attention.multiHeadAttention({ dModel, numHeads });
      mha.loadStateDict(state);
      const want = layerOracle({ numHeads }, state, x, { context });
      const { output, weights } = mha.forward(x, { context, needWeights: true });
      assertClose(output, want.output);
      assertClose(weights, want.weights);
      const keyLengths = Int32Array.of(7, 7);
      assertClose(mha.forward(x, { context: padded, keyLengths }).output, output, { absolute: 1e-6 });
      mha.dispose();
    });

    test('B-028: layouts, views with an offset and parts of packed data equal contiguous copies', () => {
      for (const s of fieldSizes) {
        const { q, k, v } = tensors('B-028', s);
        const inputs = remember(q, k, v);
        const want = attend(q, k, v).output;
        const swap = (x) => transpose(x, [0, 2, 1, 3]);
        assertClose(swap(attend(swap(q), swap(k), swap(v), { layout: 'bthd' }).output), want, { absolute: 1e-6 });
        const packed = new Float32Array(3 + q.data.length + k.data.length + v.data.length + 2).fill(Number.NaN);
        let at = 3;
        const [qView, kView, vView] = [q, k, v].map((x) => {
          packed.set(x.data, at);
          at += x.data.length;
          return { data: packed.subarray(at - x.data.length, at), shape: x.shape };
        });
        assertSameBits(attend(qView, kView, vView).output, want);
        assertUnchanged(inputs);
      }
    });

    test('B-028, B-035: data of another length than its shape is refused', () => {
      const { q, k, v } = tensors('B-028 lengths', fieldSizes[0]);
      const longer = (x) => ({ data: new Float32Array(x.data.length + 1), shape: x.shape });
      const shorter = (x) => ({ data: x.data.subarray(1), shape: x.shape });
      for (const wrong of [longer, shorter]) {
        assert.throws(() => attend(wrong(q), k, v), errorNaming('INVALID_SHAPE', 'q'));
        assert.throws(() => attend(q, wrong(k), v), errorNaming('INVALID_SHAPE', 'k'));
        assert.throws(() => attend(q, k, wrong(v)), errorNaming('INVALID_SHAPE', 'v'));
      }
      const narrower = { data: new Float32Array(2 * 3 * 6 * 4), shape: [2, 3, 6, 4] };
      assert.throws(() => attend(q, narrower, v), errorNaming('INVALID_SHAPE', 'k'));
      const fewer = { data: new Float32Array(2 * 3 * 5 * 7), shape: [2, 3, 5, 7] };
      assert.throws(() => attend(q, k, fewer), errorNaming('INVALID_SHAPE', 'v'));
    });

    test('B-030: zero lengths inside a batch give 0 and no NaN', () => {
      for (const Tq of [1, 5, 40]) {
        const { q, k, v } = tensors(`B-030 ${Tq}`, { B: 4, H: 3, Tq, Tk: 7, D: 6, Dv: 8 });
        const options = { keyLengths: Int32Array.of(0, 3, 7, 0), returnLse: true, needWeights: true };
        const got = attend(q, k, v, options);
        const want = oracle(q, k, v, options);
        assertClose(got.output, want.output);
        assertClose(got.weights, want.weights);
        assertClose(got.lse, want.lse);
        for (const b of [0, 3]) assert.ok(slice(got.output, 0, b, b + 1).data.every((x) => x === 0));
      }
    });

    test('B-031: any head size, for one row and for many', () => {
      for (const D of kHeadSizes) {
        for (const Tq of [1, 9]) {
          const { q, k, v } = tensors(`B-031 ${D} ${Tq}`, { B: 2, H: 4, Hkv: 2, Tq, Tk: 7, D });
          assertClose(attend(q, k, v).output, oracle(q, k, v).output, { what: `D = ${D}` });
        }
      }
    });

    test('B-033: neighbouring query heads share a key/value head', () => {
      const zeros = (H, T) => ({ data: new Float32Array(H * T), shape: [1, H, T, 1] });
      for (const Tq of [1, 40]) {
        const heads = (Hkv) => {
          const v = {
            data: Float32Array.from({ length: Hkv * 3 }, (_, n) => 1 + Math.floor(n / 3)),
            shape: [1, Hkv, 3, 1],
          };
          const { data } = attend(zeros(4, Tq), zeros(Hkv, 3), v).output;
          return [0, 1, 2, 3].map((h) => data[h * Tq]);
        };
        assertClose(heads(2), [1, 1, 2, 2]);
        assertClose(heads(1), [1, 1, 1, 1]);
        assertClose(heads(4), [1, 2, 3, 4]);
      }
      assert.throws(() => attend(zeros(4, 2), zeros(3, 3), zeros(3, 3)), errorNaming('INVALID_SHAPE', '4', '3'));
    });

    test('B-035: nothing beside the tensors is read or written', () => {
      for (const [D, Tk, Tq] of [
        [5, 3, 2],
        [3, 1, 1],
        [7, 67, 33],
        [1, 5, 9],
      ]) {
        const { q, k, v } = tensors(`B-035 ${D}`, { B: 1, H: 1, Tq, Tk, D });
        const poison = () => attention.tensor(new Float32Array(8).fill(Number.NaN), [8]);
        const held = [poison()];
        const place = (data, shape) => {
          const tensor = attention.tensor(data, shape);
          held.push(tensor, poison());
          return tensor;
        };
        const [Q, K, V] = [q, k, v].map(({ data, shape }) => place(data, shape));
        const out = place(null, [1, 1, Tq, D]);
        attend(Q, K, V, { out });
        assertClose({ data: out.data, shape: out.shape }, oracle(q, k, v).output);
        for (const tensor of held) if (tensor.shape.length === 1) assert.ok(tensor.data.every(Number.isNaN));
        for (const tensor of held) tensor.dispose();
      }
    });

    test('B-037: no weights, one per head, or their mean', () => {
      for (const s of fieldSizes) {
        const { q, k, v } = tensors('B-037', s);
        assert.equal(attend(q, k, v).weights, undefined);
        const { weights } = attend(q, k, v, { needWeights: true });
        assert.deepEqual([...weights.shape], [s.B, s.H, s.Tq, s.Tk]);
        const mean = attend(q, k, v, { needWeights: 'mean' }).weights;
        assert.deepEqual([...mean.shape], [s.B, s.Tq, s.Tk]);
        const size = s.Tq * s.Tk;
        const want = mean.data.map((_, n) => {
          const first = Math.floor(n / size) * s.H * size + (n % size);
          return [0, 1, 2].reduce((sum, h) => sum + weights.data[first + h * size], 0) / 3;
        });
        assertClose(mean.data, want, { absolute: 1e-6 });
      }
    });

    test('B-038: packed and separate projections, other key and value widths, wrong sizes', () => {
      const g = random(38);
      const [dModel, numHeads] = [12, 3];
      const shapes = { q_proj: 12, k_proj: 12, v_proj: 12, out_proj: 12 };
      const state = {};
      for (const [name, width] of Object.entries(shapes)) {
        state[`${name}.weight`] = g.tensor([12, width], 0.3);
        state[`${name}.bias`] = g.tensor([12], 0.3);
      }
      const x = g.tensor([2, 5, dModel]);
      const want = layerOracle({ numHeads, isCausal: true }, state, x);
      const packed = {
        in_proj_weight: stack(state['q_proj.weight'], state['k_proj.weight'], state['v_proj.weight']),
        in_proj_bias: stack(state['q_proj.bias'], state['k_proj.bias'], state['v_proj.bias']),
        'o_proj.weight': state['out_proj.weight'],
        'o_proj.bias': state['out_proj.bias'],
      };
      for (const dict of [state, packed]) {
        const mha = attention.multiHeadAttention({ dModel, numHeads, bias: true, isCausal: true });
        mha.loadStateDict(dict);
        const { output, weights } = mha.forward(x, { needWeights: true });
        assertClose(output, want.output);
        assertClose(weights, want.weights);
        mha.dispose();
      }
      const create = (config) => attention.multiHeadAttention({ dModel, numHeads, ...config });
      assert.throws(() => create({ numHeads: 5 }), errorNaming('INVALID_OPTION', '12', '5'));
      const mha = create({ bias: true });
      const wrong = { ...state, 'k_proj.weight': g.tensor([12, 10]) };
      assert.throws(
        () => mha.loadStateDict(wrong),
        errorNaming('INVALID_SHAPE', 'k_proj.weight', '[12, 12]', '[12, 10]'),
      );
      const { 'v_proj.weight': _, ...missing } = state;
      assert.throws(() => mha.loadStateDict(missing), errorNaming('INVALID_OPTION', 'v_proj.weight'));
      const surplus = { ...state, 'g_proj.weight': g.tensor([12, 12]) };
      assert.throws(() => mha.loadStateDict(surplus), errorNaming('INVALID_OPTION', 'g_proj.weight'));
      mha.dispose();
    });

    test('B-038: keys and values from contexts of other widths than the model', () => {
      const g = random(138);
      const [dModel, numHeads] = [12, 3];
      for (const [kDim, vDim] of [
        [10, 10],
        [10, 14],
        [12, 5],
      ]) {
        const state = {
          'q_proj.weight': g.tensor([12, 12], 0.3),
          'k_proj.weight': g.tensor([12, kDim], 0.3),
          'v_proj.weight': g.tensor([12, vDim], 0.3),
          'out_proj.weight': g.tensor([12, 12], 0.3),
        };
        const mha = attention.multiHeadAttention({ dModel, numHeads, kDim, vDim });
        mha.loadStateDict(state);
        const x = g.tensor([2, 4, dModel]);
        const key = g.tensor([2, 7, kDim]);
        const context = kDim === vDim ? key : { key, value: g.tensor([2, 7, vDim]) };
        const inputs = remember(x, key);
        assertClose(mha.forward(x, { context }).output, layerOracle({ numHeads }, state, x, { context }).output);
        assertUnchanged(inputs);
        mha.dispose();
      }
    });

    test('B-039: the layout changes the result even where T equals H', () => {
      const { q, k, v } = tensors('B-039', { B: 2, H: 4, Tq: 4, Tk: 4, D: 5, Dv: 7 });
      const plain = attend(q, k, v).output;
      const other = attend(q, k, v, { layout: 'bthd' }).output;
      assert.deepEqual([...other.shape], [2, 4, 4, 7]);
      assert.notDeepEqual(other.data, plain.data);
      assertClose(other, oracle(q, k, v, { layout: 'bthd' }).output);
      assert.equal(elements(other.shape), other.data.length);
    });
  });
}
