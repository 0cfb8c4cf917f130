// What is in memory: resident tensors, views under growth, disposal, and that calls leave nothing behind.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { AttentionError } from 'attention-wasm';
import { builds, loadBuild } from './support/builds.js';
import { random } from './support/random.js';

const kMiB = 2 ** 20;
const row = (...values) => ({ data: Float32Array.from(values), shape: [1, values.length] });
const disposed = (error) =>
  error instanceof AttentionError && error.code === 'DISPOSED' && / got a disposed one$/.test(error.message);

for (const build of builds()) {
  describe(`residents, ${build}`, () => {
    test('a tensor holds its elements, in each type', async () => {
      const attention = await loadBuild(build);
      const floats = attention.tensor(Float32Array.of(1, -2, 3, 4, 5, 6), [2, 3]);
      assert.deepEqual([floats.shape, floats.dtype, floats.count], [[2, 3], 'float32', 6]);
      assert.deepEqual(floats.data, Float32Array.of(1, -2, 3, 4, 5, 6));
      const bits = attention.tensor(Uint16Array.of(1, 2), [2], 'bfloat16');
      assert.deepEqual([bits.dtype, bits.data], ['bfloat16', Uint16Array.of(1, 2)]);
      assert.equal(attention.tensor(Uint16Array.of(1), [1]).dtype, 'float16');
      for (const dtype of [undefined, 'float32', 'float16', 'bfloat16']) {
        const zeros = attention.tensor(null, [2, 2], dtype);
        assert.equal(zeros.dtype, dtype ?? 'float32');
        assert.deepEqual([...zeros.data], [0, 0, 0, 0]);
      }
      assert.deepEqual([...attention.tensor(null, [0, 3]).data], []);
      assert.deepEqual([...attention.tensor(Float32Array.of(7), []).data], [7]);
    });

    test('zeros are zeros where something else has been', async () => {
      const attention = await loadBuild(build);
      const full = attention.tensor(new Float32Array(1000).fill(Number.NaN), [1000]);
      full.dispose();
      assert(attention.tensor(null, [1000]).data.every((value) => value === 0));
    });

    test('data is a live view, read() a copy, and the shape is fixed', async () => {
      const attention = await loadBuild(build);
      const shape = [3];
      const tensor = attention.tensor(Float32Array.of(1, 2, 3), shape);
      shape[0] = 4;
      assert.deepEqual(tensor.shape, [3]);
      assert.throws(() => tensor.shape.push(1), TypeError);
      const copy = tensor.read();
      tensor.data[0] = 9;
      assert.deepEqual([tensor.data[0], copy[0]], [9, 1]);
    });

    test('a resident is used in place, and out stays in memory', async () => {
      const attention = await loadBuild(build);
      const g = random(1);
      const [q, k, v] = [g.tensor([2, 3, 4]), g.tensor([2, 5, 4]), g.tensor([2, 5, 6])];
      const want = attention.scaledDotProductAttention(q, k, v).output;
      const [rq, rk, rv] = [q, k, v].map(({ data, shape }) => attention.tensor(data, shape));
      const out = attention.tensor(null, [2, 3, 6]);
      const { output } = attention.scaledDotProductAttention(rq, rk, rv, { out });
      assert.equal(output, out);
      assert.deepEqual(out.data, want.data);
      rq.data[0] = 100; // what it reads is the resident itself
      assert.notDeepEqual(attention.scaledDotProductAttention(rq, rk, rv).output.data, want.data);
    });

    test('growth empties older views, and nothing is lost', async () => {
      const attention = await loadBuild(build);
      const tensor = attention.tensor(Float32Array.of(1, 2, 3), [3]);
      const result = attention.linear(
        { data: Float32Array.of(1, 2), shape: [1, 2] },
        { data: Float32Array.of(3, 4), shape: [1, 2] },
      );
      const before = tensor.data;
      const { total } = attention.memory;
      const large = attention.tensor(null, [(total + kMiB) / 4]);
      assert(attention.memory.total > total);
      if (!(before.buffer instanceof SharedArrayBuffer)) assert.equal(before.length, 0);
      assert.deepEqual(tensor.data, Float32Array.of(1, 2, 3));
      assert.deepEqual(result.data, Float32Array.of(11));
      large.dispose();
    });

    test('a view of the memory is plain data, also when the call makes it grow', async () => {
      const attention = await loadBuild(build);
      const T = 4096;
      const tensor = attention.tensor(random(3).tensor([T, 64]).data, [T, 64]);
      const x = { data: tensor.data, shape: [T, 64] };
      const free = attention.memory.total - attention.memory.allocated;
      if (free > kMiB) attention.tensor(null, [Math.floor((free - kMiB) / 4)]);
      const { total } = attention.memory;
      const { output } = attention.scaledDotProductAttention(x, x, x, { windowSize: [2, 2] });
      assert(attention.memory.total > total, 'the call has to make the memory grow');
      assert.deepEqual(
        output.data,
        attention.scaledDotProductAttention(tensor, tensor, tensor, { windowSize: [2, 2] }).output.data,
      );
      const view = tensor.data;
      const copy = attention.tensor(view, [T, 64]);
      assert.deepEqual(copy.data, tensor.data);
    });

    test('E-074: dispose gives the memory back; twice is harmless; use after it throws', async () => {
      const attention = await loadBuild(build);
      const { allocated } = attention.memory;
      const tensor = attention.tensor(Float32Array.of(1, 2), [1, 2]);
      const packed = attention.packLinear(row(1, 2));
      const mha = attention.multiHeadAttention({ dModel: 2, numHeads: 1 });
      const square = { data: Float32Array.of(1, 0, 0, 1), shape: [2, 2] };
      mha.loadStateDict({
        'q_proj.weight': square,
        'k_proj.weight': square,
        'v_proj.weight': square,
        'o_proj.weight': square,
      });
      assert(attention.memory.allocated > allocated);
      for (const resident of [tensor, packed, mha, tensor, packed, mha]) resident.dispose();
      assert.equal(attention.memory.allocated, allocated);
      assert.equal(tensor.disposed, true);
      assert.throws(() => tensor.data, disposed);
      assert.throws(() => tensor.read(), disposed);
      assert.throws(() => attention.scaledDotProductAttention(tensor, row(1, 2), row(1, 2)), disposed);
      assert.throws(
        () => attention.scaledDotProductAttention(row(1, 2), row(1, 2), row(1, 2), { out: tensor }),
        disposed,
      );
      assert.throws(() => attention.linear(row(1, 2), packed), disposed);
      assert.throws(() => mha.forward(row(1, 2)), disposed);
      assert.throws(() => mha.stateDict(), disposed);
      assert.throws(() => mha.loadStateDict({}), disposed);
      assert.equal(attention.memory.allocated, allocated);
    });

    test('Symbol.dispose is dispose', async () => {
      assert(Symbol.dispose);
      const attention = await loadBuild(build);
      const { allocated } = attention.memory;
      const mha = attention.multiHeadAttention({ dModel: 2, numHeads: 1 });
      for (const resident of [attention.tensor(null, [4]), attention.packLinear(row(1, 2)), mha])
        resident[Symbol.dispose]();
      assert.equal(attention.memory.allocated, allocated);
      attention[Symbol.dispose]();
      assert.throws(() => attention.memory, disposed);
    });

    test('after dispose of the instance, everything of it throws', async () => {
      const attention = await loadBuild(build);
      const tensor = attention.tensor(null, [1, 2]);
      const mha = attention.multiHeadAttention({ dModel: 2, numHeads: 1 });
      attention.dispose();
      attention.dispose();
      const x = row(1, 2);
      const calls = [
        () => attention.scaledDotProductAttention(x, x, x),
        () => attention.varlenAttention(x, x, x),
        () => attention.mergeAttention([]),
        () => attention.rope(x, { style: 'half' }),
        () => attention.ropeTables({ rotaryDim: 2, length: 1 }),
        () => attention.linear(x, x),
        () => attention.packLinear(x),
        () => attention.tensor(null, [1]),
        () => attention.multiHeadAttention({ dModel: 2, numHeads: 1 }),
        () => attention.memory,
        () => tensor.data,
        () => mha.stateDict(),
      ];
      for (const call of calls) assert.throws(call, disposed, String(call));
      assert.equal(tensor.disposed, true);
      tensor.dispose();
      mha.dispose();
      assert.equal(typeof attention.info.version, 'string');
    });

    test('one instance does not touch another', async () => {
      const [one, two] = [await loadBuild(build), await loadBuild(build)];
      const tensor = two.tensor(Float32Array.of(1, 2, 3), [3]);
      one.tensor(new Float32Array(1000).fill(9), [1000]);
      one.dispose();
      assert.deepEqual(tensor.data, Float32Array.of(1, 2, 3));
      assert.deepEqual([...two.scaledDotProductAttention(row(1, 2), row(1, 2), row(1, 2)).output.data], [1, 2]);
    });

    test('2,000 random calls, a third of them refused, end where they began', async () => {
      const attention = await loadBuild(build);
      const g = random(2000);
      attention.tensor(null, [4 * kMiB]).dispose(); // room for all of them, so that no growth hides a leak
      const start = attention.memory;
      let refused = 0;
      for (let n = 0; n < 2000; ++n) {
        const call = kRandomCalls[n % kRandomCalls.length];
        try {
          call(attention, g, n % 3 === 0);
          assert.notEqual(n % 3, 0, `call ${n} was to be refused: ${call}`);
        } catch (error) {
          if (!(error instanceof AttentionError)) throw error;
          assert.equal(n % 3, 0, `call ${n}: ${error.message}`);
          ++refused;
        }
      }
      assert.equal(refused, 667);
      assert.deepEqual(attention.memory, start);
    });
  });
}

// These fill gigabytes, so one build stands for all: addresses are the same in each.
describe('a full memory', () => {
  test('E-076: addresses above 2 GiB are addresses', { timeout: 120_000 }, async () => {
    const attention = await loadBuild('baseline');
    const filler = Array.from({ length: 5 }, () => attention.tensor(null, [112 * kMiB]));
    assert(attention.memory.allocated > 2 ** 31);
    const g = random(31);
    const [q, k, v] = [g.tensor([2, 7, 5]), g.tensor([2, 9, 5]), g.tensor([2, 9, 3])];
    const want = (await loadBuild('baseline')).scaledDotProductAttention(q, k, v, {
      needWeights: true,
      returnLse: true,
    });
    const got = attention.scaledDotProductAttention(q, k, v, { needWeights: true, returnLse: true });
    for (const name of ['output', 'weights', 'lse']) assert.deepEqual(got[name].data, want[name].data);
    const resident = attention.tensor(q.data, q.shape);
    assert(resident.data.byteOffset > 2 ** 31);
    assert.deepEqual(attention.scaledDotProductAttention(resident, k, v).output.data, want.output.data);
    const half = attention.tensor(Uint16Array.of(0x3c00, 0x4000), [1, 2]);
    assert.deepEqual([...attention.linear(half, row(1, 1)).data], [0x4200]);
    for (const tensor of filler) tensor.dispose();
  });

  test('E-078: what does not fit is refused with its size, again and again', async () => {
    const attention = await loadBuild('baseline');
    const start = attention.memory.allocated;
    const parts = [];
    const more = () => parts.push(attention.tensor(null, [127 * kMiB]));
    assert.throws(
      () => {
        for (let n = 0; n < 9; ++n) more();
      },
      (error) =>
        error.code === 'OUT_OF_MEMORY' &&
        error.message === `tensor: memory must be had for the call, got no room for ${127 * kMiB * 4} bytes`,
    );
    assert(parts.length >= 6, `${parts.length}`);
    assert.throws(more, { code: 'OUT_OF_MEMORY' });
    assert.deepEqual([...attention.scaledDotProductAttention(row(1, 2), row(1, 2), row(1, 2)).output.data], [1, 2]);
    for (const tensor of parts) tensor.dispose();
    assert.equal(attention.memory.allocated, start);
    attention.dispose();
  });
});

/** Calls of random sizes: (instance, generator, whether it shall be refused). */
const kRandomCalls = [
  (attention, g, wrong) => {
    const [H, Tq, Tk, D] = [g.integer(1, 3), g.integer(0, 9), g.integer(0, 9), g.integer(1, 9)];
    const options = { isCausal: 'bottom-right', needWeights: g.integer(0, 1) === 1, returnLse: true };
    const v = g.tensor([H, Tk + (wrong ? 1 : 0), D]);
    attention.scaledDotProductAttention(g.tensor([H, Tq, D]), g.tensor([H, Tk, D]), v, options);
  },
  (attention, g, wrong) => {
    const T = g.integer(1, 9);
    const x = g.tensor([T, 2, 4]);
    attention.varlenAttention(x, x, x, { cuSeqlensQ: [0, T], cuSeqlensK: [0, wrong ? T + 1 : T], needWeights: true });
  },
  (attention, g, wrong) => {
    const rotaryDim = wrong ? 3 : 4;
    attention.rope(g.tensor([2, g.integer(1, 9), 6]), { style: 'half', rotaryDim, offset: g.integer(0, 100) });
  },
  (attention, g, wrong) => {
    const [N, K] = [g.integer(1, 9), g.integer(1, 9)];
    const packed = attention.packLinear(g.tensor([N, K]));
    try {
      attention.linear(g.tensor([3, wrong ? K + 1 : K]), packed);
    } finally {
      packed.dispose();
    }
  },
  (attention, g, wrong) => {
    const tensor = attention.tensor(g.tensor([3, 4]).data, [3, 4]);
    try {
      attention.scaledDotProductAttention(tensor, tensor, tensor, { out: wrong ? tensor : null });
    } finally {
      tensor.dispose();
    }
  },
  (attention, g, wrong) => {
    const part = { output: g.tensor([2, 3, 4]), lse: g.tensor([2, 3]) };
    attention.mergeAttention([part, part], { sinks: new Float32Array(wrong ? 3 : 2) });
  },
  (attention, g, wrong) => {
    const mha = attention.multiHeadAttention({ dModel: 4, numHeads: 2, isCausal: true });
    try {
      const names = ['q_proj', 'k_proj', 'v_proj', 'out_proj'].map((name) => `${name}.weight`);
      mha.loadStateDict(Object.fromEntries(names.map((name) => [name, g.tensor([4, 4])])));
      mha.forward(g.tensor([1, g.integer(1, 9), wrong ? 5 : 4]), { needWeights: true });
    } finally {
      mha.dispose();
    }
  },
];

test('what is forgotten is given back when it is collected', () => {
  const script = `
    import { load } from 'attention-wasm';
    const attention = await load({ simd: 'scalar' });
    const start = attention.memory.allocated;
    (() => { for (let n = 0; n < 10; ++n) attention.tensor(null, [1000]); attention.packLinear({ data: new Float32Array(4), shape: [2, 2] }); })();
    if (attention.memory.allocated === start) throw new Error('nothing was allocated');
    for (let n = 0; n < 50 && attention.memory.allocated !== start; ++n) {
      gc();
      await new Promise((done) => setTimeout(done, 20));
    }
    if (attention.memory.allocated !== start) throw new Error('still allocated');
  `;
  const cwd = new URL('..', import.meta.url);
  const { status, stderr } = spawnSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', script], {
    cwd,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
});
