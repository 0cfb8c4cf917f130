// The ONNX operators beyond the conformance cases: outputs on request, types, and what is refused.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { onnxAttention, onnxRotaryEmbedding } from 'attention-wasm/onnx';
import { builds, loadBuild } from './support/builds.js';
import { errorNaming } from './support/field.js';
import { attention as oracle } from './support/oracle.js';
import { rope as ropeOracle } from './support/oracle-rope.js';
import { random } from './support/random.js';
import { assertClose, assertSameBits, assertUnchanged, cast, remember, slice, transpose } from './support/tensors.js';

const [B, H, Hkv, L, S, D, Dv] = [2, 6, 3, 4, 5, 8, 7];

function tensors(seed) {
  const g = random(seed);
  return { g, Q: g.tensor([B, H, L, D]), K: g.tensor([B, Hkv, S, D]), V: g.tensor([B, Hkv, S, Dv]) };
}

/** [B, H, T, D] as [B, T, H·D]. */
function pack(x) {
  const { data, shape } = transpose(x, [0, 2, 1, 3]);
  return { data, shape: [shape[0], shape[1], shape[2] * shape[3]] };
}

function joinTokens(past, now) {
  const parts = [past, now].map((x) => transpose(x, [2, 0, 1, 3]));
  const data = new Float32Array(past.data.length + now.data.length);
  data.set(parts[0].data);
  data.set(parts[1].data, parts[0].data.length);
  return transpose({ data, shape: parts[1].shape.with(0, parts[0].shape[0] + parts[1].shape[0]) }, [1, 2, 0, 3]);
}

for (const build of builds()) {
  const attention = await loadBuild(build);

  describe(`onnxAttention, ${build}`, () => {
    test('packed and split inputs agree, with grouped heads and another value size', () => {
      const { Q, K, V } = tensors(1);
      const inputs = remember(Q, K, V);
      const { Y } = onnxAttention(attention, { Q, K, V });
      assertClose(Y, oracle(Q, K, V).output);
      const packed = { Q: pack(Q), K: pack(K), V: pack(V) };
      const heads = { q_num_heads: H, kv_num_heads: Hkv };
      assertClose(onnxAttention(attention, packed, heads).Y, pack(Y), { absolute: 1e-6 });
      assertUnchanged(inputs);
    });

    test('a past of any length, also none, in both layouts', () => {
      for (const P of [0, 1, 3]) {
        const { g, Q, K, V } = tensors(2 + P);
        const past = { past_key: g.tensor([B, Hkv, P, D]), past_value: g.tensor([B, Hkv, P, Dv]) };
        const [keys, values] = [joinTokens(past.past_key, K), joinTokens(past.past_value, V)];
        const want = oracle(Q, keys, values, { isCausal: true, queryOffset: P });
        const split = onnxAttention(attention, { Q, K, V, ...past }, { is_causal: 1, qk_matmul_output_mode: 3 });
        const packed = onnxAttention(
          attention,
          { Q: pack(Q), K: pack(K), V: pack(V), ...past },
          { is_causal: 1, q_num_heads: H, kv_num_heads: Hkv, qk_matmul_output_mode: 3 },
        );
        assertClose(split.Y, want.output);
        assertClose(packed.Y, pack({ ...want.output, data: Float32Array.from(want.output.data) }));
        for (const got of [split, packed]) {
          assertSameBits(got.present_key, keys);
          assertSameBits(got.present_value, values);
          assert.deepEqual([...got.present_key.shape], [B, Hkv, P + S, D]);
          assertClose(got.qk_matmul_output, want.weights);
        }
      }
    });

    test('qk_matmul_output only when its mode is given, at each of its stages', () => {
      const { g, Q, K, V } = tensors(6);
      const bias = { data: g.tensor([L, S]).data.map((x) => (x > 1 ? Number.NEGATIVE_INFINITY : x)), shape: [L, S] };
      const options = { attnMask: bias, softcap: 2, isCausal: true, queryOffset: 0 };
      const attributes = { softcap: 2, is_causal: 1 };
      const want = oracle(Q, K, V, options);
      assert.equal(onnxAttention(attention, { Q, K, V, attn_mask: bias }, attributes).qk_matmul_output, undefined);
      for (const [mode, stage] of ['scores', 'capped', 'masked', 'weights'].entries()) {
        const got = onnxAttention(
          attention,
          { Q, K, V, attn_mask: bias },
          { ...attributes, qk_matmul_output_mode: mode },
        );
        assertClose(got.qk_matmul_output, want.stage(stage), { what: stage });
        assertClose(got.Y, want.output);
      }
    });

    test('a short mask hides the keys past it, in every type', () => {
      const { g, Q, K, V } = tensors(7);
      const full = (data, fill) => ({
        data: Float32Array.from({ length: L * S }, (_, n) =>
          n % S < 3 ? data[Math.floor(n / S) * 3 + (n % S)] : fill,
        ),
        shape: [L, S],
      });
      const booleans = g.booleans([L, 3], 0.7);
      const bias = g.tensor([L, 3]);
      const hidden = Number.NEGATIVE_INFINITY;
      const additive = oracle(Q, K, V, { attnMask: full(bias.data, hidden) }).output;
      const allowed = { data: Uint8Array.from(full(booleans.data, 0).data), shape: [L, S] };
      assertClose(onnxAttention(attention, { Q, K, V, attn_mask: bias }).Y, additive);
      assertClose(
        onnxAttention(attention, { Q, K, V, attn_mask: booleans }).Y,
        oracle(Q, K, V, { attnMask: allowed }).output,
      );
      const array = { data: Array.from(booleans.data, Boolean), shape: [L, 3] };
      assertClose(
        onnxAttention(attention, { Q, K, V, attn_mask: array }).Y,
        oracle(Q, K, V, { attnMask: allowed }).output,
      );
      for (const dtype of ['float16', 'bfloat16']) {
        const half = cast(bias, dtype);
        const got = onnxAttention(attention, { Q, K, V, attn_mask: half }).Y;
        assertClose(got, additive, { absolute: dtype === 'float16' ? 2e-3 : 2e-2, what: dtype });
      }
    });

    test('half precision comes back in the type of Q', () => {
      for (const dtype of ['float16', 'bfloat16']) {
        const { Q, K, V } = tensors(8);
        const halves = Object.fromEntries(Object.entries({ Q, K, V }).map(([name, x]) => [name, cast(x, dtype)]));
        const got = onnxAttention(attention, halves, { qk_matmul_output_mode: 3 });
        const want = oracle(halves.Q, halves.K, halves.V);
        const relative = dtype === 'float16' ? 2 ** -11 : 2 ** -8;
        for (const [name, tensor] of [
          ['output', got.Y],
          ['weights', got.qk_matmul_output],
        ]) {
          assert.ok(tensor.data instanceof Uint16Array);
          assertClose({ dtype, ...tensor }, want[name], { absolute: 1e-5, relative, what: name });
        }
      }
    });

    test('windows and valid lengths take their positions from the cache', () => {
      const { Q, K, V } = tensors(9);
      const nonpad = [5, 2];
      for (const nonpad_kv_seqlen of [nonpad, Int32Array.from(nonpad), BigInt64Array.from(nonpad, BigInt)]) {
        const attributes = { left_window_size: 1, right_window_size: 0 };
        const want = oracle(Q, K, V, {
          windowSize: [1, 0],
          queryOffset: Int32Array.from(nonpad, (length) => length - L),
          keyLengths: Int32Array.from(nonpad),
        });
        assertClose(onnxAttention(attention, { Q, K, V, nonpad_kv_seqlen }, attributes).Y, want.output);
      }
    });

    test('calls that return promises are awaited', async () => {
      const { Q, K, V } = tensors(10);
      const slow = { scaledDotProductAttention: async (...call) => attention.scaledDotProductAttention(...call) };
      const result = onnxAttention(slow, { Q, K, V });
      assert.ok(result instanceof Promise);
      assertClose((await result).Y, oracle(Q, K, V).output);
    });

    test('what the operator does not allow is refused', () => {
      const { g, Q, K, V } = tensors(11);
      const run = (inputs, attributes) => () => onnxAttention(attention, { Q, K, V, ...inputs }, attributes);
      const refusals = [
        [run({ Q: undefined }), 'INVALID_SHAPE', 'Q'],
        [run({ K: pack(K) }), 'INVALID_SHAPE', 'K', 'rank'],
        [run({ Q: { ...Q, shape: [B * H, L * D] } }), 'INVALID_SHAPE', 'Q'],
        [run({ Q: pack(Q), K: pack(K), V: pack(V) }), 'INVALID_OPTION', 'q_num_heads'],
        [run({ Q: pack(Q), K: pack(K), V: pack(V) }, { q_num_heads: 5, kv_num_heads: 3 }), 'INVALID_SHAPE', 'Q', '5'],
        [run({}, { q_num_heads: 4 }), 'INVALID_SHAPE', 'Q', '4'],
        [run({ past_key: g.tensor([B, Hkv, 2, D]) }), 'INVALID_OPTION', 'past_value'],
        [run({ past_key: g.tensor([B, H, 2, D]), past_value: g.tensor([B, Hkv, 2, Dv]) }), 'INVALID_SHAPE', 'past_key'],
        [
          run({ past_key: cast(g.tensor([B, Hkv, 2, D]), 'float16'), past_value: g.tensor([B, Hkv, 2, Dv]) }),
          ...['INVALID_DTYPE', 'past_key'],
        ],
        [
          run({ past_key: g.tensor([B, Hkv, 2, D]), past_value: g.tensor([B, Hkv, 2, Dv]), nonpad_kv_seqlen: [5, 5] }),
          ...['INVALID_OPTION', 'nonpad_kv_seqlen'],
        ],
        [run({ nonpad_kv_seqlen: [5] }), 'INVALID_SHAPE', 'nonpad_kv_seqlen'],
        [run({ nonpad_kv_seqlen: [5, 6] }), 'INVALID_OPTION', 'nonpad_kv_seqlen'],
        [run({ attn_mask: g.booleans([L + 1, S]) }), 'INVALID_SHAPE', 'attnMask'],
        [run({ attn_mask: { data: new Float64Array(20), shape: [L, S] } }), 'INVALID_DTYPE', 'attnMask'],
        [run({}, { is_causal: 2 }), 'INVALID_OPTION', 'is_causal'],
        [run({}, { qk_matmul_output_mode: 4 }), 'INVALID_OPTION', 'qk_matmul_output_mode'],
        [run({}, { softmax_precision: 11 }), 'UNSUPPORTED', 'softmax_precision'],
        [run({}, { softmax_precision: 2 }), 'INVALID_OPTION', 'softmax_precision'],
        [run({}, { left_window_size: -2 }), 'INVALID_OPTION', 'windowSize'],
        [run({}, { axis: 1 }), 'INVALID_OPTION', 'axis'],
        [run({ mask: 1 }), 'INVALID_OPTION', 'mask'],
      ];
      for (const [call, code, ...words] of refusals) assert.throws(call, errorNaming(code, ...words));
    });
  });

  describe(`onnxRotaryEmbedding, ${build}`, () => {
    const frequencies = [1, 0.01];
    const cache = (f, positions) => ({
      data: Float32Array.from({ length: positions * 2 }, (_, n) => f(Math.floor(n / 2) * frequencies[n % 2])),
      shape: [positions, 2],
    });

    test('equals rope of the same frequencies, packed or not, with and without ids, in every type', () => {
      const X = random(20).tensor([2, 3, 4, 6]);
      const ids = Int32Array.of(3, 1, 4, 1, 5, 9, 2, 6);
      const [cos, sin] = [cache(Math.cos, 10), cache(Math.sin, 10)];
      const rows = ({ data }) => ({
        data: Float32Array.from({ length: 16 }, (_, n) => data[ids[n >> 1] * 2 + (n % 2)]),
        shape: [2, 4, 2],
      });
      for (const style of ['interleaved', 'half']) {
        const want = ropeOracle(X, { style, rotaryDim: 4, positions: { data: ids, shape: [2, 4] } });
        const attributes = { interleaved: style === 'interleaved' ? 1 : 0, rotary_embedding_dim: 4 };
        for (const position_ids of [ids, BigInt64Array.from(ids, BigInt), { data: Array.from(ids), shape: [2, 4] }]) {
          const { Y } = onnxRotaryEmbedding(attention, { X, cos_cache: cos, sin_cache: sin, position_ids }, attributes);
          assertClose(Y, want, { absolute: 1e-6 });
        }
        const direct = { cos_cache: rows(cos), sin_cache: rows(sin) };
        assertClose(onnxRotaryEmbedding(attention, { X, ...direct }, attributes).Y, want, { absolute: 1e-6 });
        const packed = onnxRotaryEmbedding(attention, { X: pack(X), ...direct }, { ...attributes, num_heads: 3 }).Y;
        assertClose(packed, pack({ ...want, data: Float32Array.from(want.data) }), { absolute: 1e-6 });
        const half = cast(X, 'float16');
        const Y = onnxRotaryEmbedding(attention, { X: half, ...direct }, attributes).Y;
        assertClose(Y, want, { absolute: 4e-3, what: 'float16' });
        assertSameBits(slice(Y, 3, 4, 6), slice(half, 3, 4, 6));
      }
    });

    test('what the operator does not allow is refused', () => {
      const X = random(21).tensor([2, 3, 4, 4]);
      const [cos_cache, sin_cache] = [cache(Math.cos, 10), cache(Math.sin, 10)];
      const position_ids = new Int32Array(8);
      const run = (inputs, attributes) => () =>
        onnxRotaryEmbedding(attention, { X, cos_cache, sin_cache, position_ids, ...inputs }, attributes);
      const refusals = [
        [run({ X: undefined }), 'INVALID_SHAPE', 'X'],
        [run({ position_ids: undefined }), 'INVALID_SHAPE', 'cos_cache'],
        [run({ position_ids: new Int32Array(8).fill(10) }), 'INVALID_OPTION', 'position_ids'],
        [run({ position_ids: new Int32Array(7) }), 'INVALID_SHAPE', 'position_ids'],
        [run({ sin_cache: cache(Math.sin, 9) }), 'INVALID_SHAPE', 'sin_cache'],
        [run({ X: pack(X) }), 'INVALID_OPTION', 'num_heads'],
        [run({}, { rotary_embedding_dim: 6 }), 'INVALID_OPTION', 'rotary_embedding_dim'],
        [run({}, { rotary_embedding_dim: 3 }), 'INVALID_OPTION', 'rotary_embedding_dim'],
        [run({}, { interleaved: 2 }), 'INVALID_OPTION', 'interleaved'],
      ];
      for (const [call, code, ...words] of refusals) assert.throws(call, errorNaming(code, ...words));
    });
  });
}
