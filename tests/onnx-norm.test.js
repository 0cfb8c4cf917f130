// The ONNX operators RMSNormalization, Softmax and TensorScatter beyond the conformance cases: axes, types, refusals.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { onnxRMSNormalization, onnxSoftmax, onnxTensorScatter } from 'attention-wasm/onnx';
import { builds, loadBuild } from './support/builds.js';
import { errorNaming } from './support/field.js';
import { random } from './support/random.js';
import {
  assertClose,
  assertSameBits,
  assertUnchanged,
  cast,
  elements,
  remember,
  transpose,
} from './support/tensors.js';

const refuses = (refusals) => {
  for (const [call, code, ...words] of refusals) assert.throws(call, errorNaming(code, ...words));
};

for (const build of builds()) {
  const attention = await loadBuild(build);

  describe(`onnxRMSNormalization, ${build}`, () => {
    test('every axis and type; a scale with ones in front', () => {
      const g = random(1);
      const X = g.tensor([2, 3, 4, 5]);
      const inputs = remember(X);
      for (const axis of [-4, -1, 0, 1, 2, 3, undefined]) {
        const at = axis === undefined ? 3 : (axis + 4) % 4;
        const inner = X.shape.slice(at);
        const width = elements(inner);
        const scale = g.tensor(inner);
        const rows = { data: X.data, shape: [120 / width, width] };
        const want = attention.rmsNorm(rows, { weight: scale.data, epsilon: 1e-5 }).data;
        const attributes = axis === undefined ? undefined : { axis };
        const { Y } = onnxRMSNormalization(attention, { X, scale }, attributes);
        assert.deepEqual([...Y.shape], X.shape);
        assertSameBits(Y.data, want);
        const wide = { data: scale.data, shape: [1, 1, 1, ...inner].slice(-4) };
        if (at > 0) assertSameBits(onnxRMSNormalization(attention, { X, scale: wide }, attributes).Y.data, want);
        const half = onnxRMSNormalization(attention, { X: cast(X, 'float16'), scale }, attributes).Y;
        assertClose(half, { data: want, shape: X.shape }, { absolute: 2e-3, relative: 2e-3 });
      }
      assertUnchanged(inputs);
    });

    test('what the operator does not allow is refused', () => {
      const X = random(2).tensor([2, 3, 4]);
      const scale = random(3).tensor([4]);
      const run = (inputs, attributes) => () => onnxRMSNormalization(attention, { X, scale, ...inputs }, attributes);
      refuses([
        [run({ X: undefined }), 'INVALID_SHAPE', 'X'],
        [run({ scale: random(3).tensor([3]) }), 'INVALID_SHAPE', 'scale must have shape [4]', '[3]'],
        [run({ scale: random(3).tensor([2, 4]) }), 'INVALID_SHAPE', 'scale'],
        [run({}, { axis: 3 }), 'INVALID_OPTION', 'axis'],
        [run({}, { axis: -4 }), 'INVALID_OPTION', 'axis'],
        [run({}, { epsilon: -1 }), 'INVALID_OPTION', 'epsilon'],
        [run({}, { stash_type: 10 }), 'UNSUPPORTED', 'stash_type'],
        [run({ bias: scale }), 'INVALID_OPTION', 'bias'],
      ]);
    });
  });

  describe(`onnxSoftmax, ${build}`, () => {
    test('every axis and type', () => {
      const input = random(4).tensor([2, 3, 4, 5], 3);
      for (const axis of [-4, -3, -2, -1, 0, 1, 2, 3]) {
        const at = (axis + 4) % 4;
        const order = [0, 1, 2, 3].filter((n) => n !== at).concat(at);
        const back = [0, 1, 2, 3].map((n) => order.indexOf(n));
        const want = transpose(attention.softmax(transpose(input, order)), back);
        assertSameBits(onnxSoftmax(attention, { input }, { axis }).output, want);
        const half = onnxSoftmax(attention, { input: cast(input, 'bfloat16') }, { axis }).output;
        assert.equal(half.dtype, 'bfloat16');
        assertClose(half, want, { absolute: 0.03 });
      }
    });

    test('what the operator does not allow is refused', () => {
      const input = random(5).tensor([2, 3]);
      refuses([
        [() => onnxSoftmax(attention, {}), 'INVALID_SHAPE', 'input'],
        [() => onnxSoftmax(attention, { input }, { axis: 2 }), 'INVALID_OPTION', 'axis'],
        [() => onnxSoftmax(attention, { input }, { dim: 1 }), 'INVALID_OPTION', 'dim'],
      ]);
    });
  });

  describe(`onnxTensorScatter, ${build}`, () => {
    /** From the definition, element by element. */
    function scatter(past, update, indices, axis, mode) {
      const result = { data: past.data.slice(), shape: past.shape };
      const strides = (shape) => shape.map((_, n) => elements(shape.slice(n + 1)));
      const [from, to] = [strides(update.shape), strides(past.shape)];
      for (let n = 0; n < update.data.length; ++n) {
        const index = from.map((stride, a) => Math.floor(n / stride) % update.shape[a]);
        const row = indices[index[0]] + index[axis];
        index[axis] = mode === 'circular' ? row % past.shape[axis] : row;
        result.data[index.reduce((sum, i, a) => sum + i * to[a], 0)] = update.data[n];
      }
      return result;
    }

    test('every axis, both modes, every type', () => {
      const g = random(6);
      for (const axis of [1, 2, 3, -1, -2, undefined]) {
        const at = axis === undefined ? 2 : (axis + 4) % 4;
        const past = g.tensor([2, 4, 5, 6]);
        for (const length of [0, 1, 3]) {
          const update = g.tensor(past.shape.with(at, length));
          for (const mode of ['linear', 'circular']) {
            const most = mode === 'linear' ? past.shape[at] - length : past.shape[at] - 1;
            const indices = [most, Math.min(1, most)];
            const inputs = { past_cache: past, update, write_indices: BigInt64Array.from(indices, BigInt) };
            const kept = remember(past, update);
            const attributes = { mode, ...(axis !== undefined && { axis }) };
            const { present_cache: present } = onnxTensorScatter(attention, inputs, attributes);
            assertSameBits(present, scatter(past, update, indices, at, mode));
            assertUnchanged(kept);
          }
          const plain = onnxTensorScatter(attention, { past_cache: past, update }, { axis: at });
          assertSameBits(plain.present_cache, scatter(past, update, [0, 0], at, 'linear'));
          const [halfPast, halfUpdate] = [past, update].map((x) => cast(x, 'bfloat16'));
          const half = onnxTensorScatter(attention, { past_cache: halfPast, update: halfUpdate }, { axis: at });
          assert.equal(half.present_cache.dtype, 'bfloat16');
          assertSameBits(half.present_cache, scatter(halfPast, halfUpdate, [0, 0], at, 'linear'));
        }
      }
    });

    test('what the operator does not allow is refused', () => {
      const past_cache = random(7).tensor([2, 4, 5]);
      const update = random(8).tensor([2, 2, 5]);
      const run = (inputs, attributes) => () =>
        onnxTensorScatter(attention, { past_cache, update, ...inputs }, attributes);
      refuses([
        [run({ past_cache: undefined }), 'INVALID_SHAPE', 'past_cache'],
        [run({ update: random(8).tensor([2, 2, 4]) }), 'INVALID_SHAPE', 'update'],
        [run({ update: random(8).tensor([2, 5, 5]) }), 'INVALID_SHAPE', 'update'],
        [run({ update: random(8).tensor([1, 2, 5]) }), 'INVALID_SHAPE', 'update'],
        [run({ update: cast(update, 'float16') }), 'INVALID_DTYPE', 'update must have the type of past_cache'],
        [run({ write_indices: [0, 3] }), 'INVALID_OPTION', 'write_indices[1]'],
        [run({ write_indices: [0] }), 'INVALID_SHAPE', 'write_indices'],
        [run({ write_indices: [0, 4] }, { mode: 'circular' }), 'INVALID_OPTION', 'write_indices[1]'],
        [run({}, { mode: 'ring' }), 'INVALID_OPTION', 'mode'],
        [run({}, { axis: 0 }), 'INVALID_OPTION', 'axis'],
        [run({}, { axis: 3 }), 'INVALID_OPTION', 'axis'],
      ]);
    });
  });
}
