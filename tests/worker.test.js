// attention-wasm/worker: the same answers as without it, and errors as they are without.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { AttentionError, load } from 'attention-wasm/worker';
import { loadBuild } from './support/builds.js';
import { namesOf } from './support/methods.js';
import { random } from './support/random.js';
import { failure, options } from './support/worker.js';

const g = random(93);
const folder = mkdtempSync(join(tmpdir(), 'attention-wasm-worker-'));
after(() => rmSync(folder, { recursive: true }));

/** Each function: what it is given, the same for an instance here and one in a worker. */
const [q, k, v] = [g.tensor([2, 4, 5, 8]), g.tensor([2, 2, 7, 8]), g.tensor([2, 2, 7, 6])];
const packedSequences = { cuSeqlensQ: [0, 2, 5], cuSeqlensK: [0, 3, 5] };
const square = () => g.tensor([8, 8]);
const state = Object.fromEntries(['q', 'k', 'v', 'out'].map((name) => [`${name}_proj.weight`, square()]));
const row = g.tensor([3, 8]);
const x = g.tensor([2, 3, 8]);
const kCalls = {
  capabilities: (attention) => attention.capabilities(),
  scaledDotProductAttention: (a) =>
    a.scaledDotProductAttention(q, k, v, { isCausal: 'bottom-right', needWeights: true, returnLse: true }),
  varlenAttention: (a) =>
    a.varlenAttention(g2([5, 2, 8]), g2([5, 2, 8]), g2([5, 2, 8]), { ...packedSequences, needWeights: true }),
  mergeAttention: (a) => a.mergeAttention([{ output: g2([2, 3, 4]), lse: g2([2, 3]) }]),
  rope: (a) => a.rope(q, { style: 'half', offset: 3 }),
  ropeTables: (a) => a.ropeTables({ rotaryDim: 8, length: 4 }),
  ropeFrequencies: (a) => a.ropeFrequencies({ rotaryDim: 8 }),
  linear: (a) => a.linear(row, state['q_proj.weight'], new Float32Array(8).fill(1)),
  rmsNorm: (a) => a.rmsNorm(row, { epsilon: 1e-3 }),
  layerNorm: (a) => a.layerNorm(row),
  softmax: (a) => a.softmax(row),
  gelu: (a) => a.gelu(row, { approximate: 'tanh' }),
  silu: (a) => a.silu(row, { gate: row }),
  tensor: async (a) => (await a.tensor(row.data, [3, 8])).read(),
  'residents as arguments and out': async (a) => {
    const [tensor, out] = [await a.tensor(row.data, [3, 8]), await a.tensor(null, [3, 8])];
    const result = await a.softmax(tensor, { out });
    assert.equal(result, out);
    return [await out.read(), out.shape, out.dtype, out.count];
  },
  packLinear: async (a) => {
    const packed = await a.packLinear(state['q_proj.weight'], new Float32Array(8).fill(2));
    return [await a.linear(row, packed), packed.shape];
  },
  multiHeadAttention: async (a) => {
    const mha = await a.multiHeadAttention({ dModel: 8, numHeads: 2, isCausal: true, rope: { style: 'half' } });
    await mha.loadStateDict(state);
    const cache = await a.keyValueCache({ batch: 2, numKvHeads: 2, headDim: 4, capacity: 9 });
    const first = await mha.forward(x, { needWeights: 'mean' });
    const cached = await mha.forward(x, { cache });
    return [first, cached, cache.length, await mha.stateDict()];
  },
  keyValueCache: async (a) => {
    const cache = await a.keyValueCache({ batch: 2, numKvHeads: 2, headDim: 8, valueDim: 6, capacity: 16 });
    await cache.append(k, v, { lengths: [7, 5] });
    const counts = () => [cache.length, cache.lengths, cache.position, cache.positions];
    const before = counts();
    const snapshot = await cache.snapshot();
    await cache.truncate(2);
    const short = [await cache.attend(q, { isCausal: false }), counts()];
    await cache.restore(snapshot);
    const again = [await cache.attend(q, { isCausal: false }), counts()];
    await cache.clear();
    return [before, short, again, counts(), cache.bytes, cache.capacity, cache.dtype];
  },
};
function g2(shape) {
  return random(shape.join('').length).tensor(shape);
}

describe('the worker', () => {
  test('every function of the package is there, and gives the same bits', async () => {
    const here = await loadBuild('baseline');
    const there = await load(options);
    assert.deepEqual(there.info, here.info);
    const names = (object) =>
      namesOf(Object.getPrototypeOf(object)).filter(
        // A device of the GPU can't leave its worker.
        (name) => !name.startsWith('_') && name !== 'device',
      );
    assert.deepEqual(names(there).sort(), names(here).sort());
    const methods = names(here).filter((name) => !['constructor', 'dispose', 'memory'].includes(name));
    assert.deepEqual(
      methods.filter((name) => !kCalls[name]),
      [],
    );
    for (const [name, call] of Object.entries(kCalls)) {
      assert.deepEqual(await call(there), await call(here), name);
    }
    there.dispose();
  });

  test('float16, as bits and, where the engine has it, as Float16Array', async () => {
    const there = await load(options);
    const bits = { data: Uint16Array.of(0x3c00, 0x4000), shape: [1, 2] };
    assert.deepEqual((await there.scaledDotProductAttention(bits, bits, bits)).output.data, bits.data);
    if (globalThis.Float16Array) {
      const half = { data: globalThis.Float16Array.of(1, 2), shape: [1, 2] };
      assert.deepEqual((await there.scaledDotProductAttention(half, half, half)).output.data, half.data);
    }
    there.dispose();
  });

  test('inputs stay as they are, unless they are to be moved; a view brings its elements only', async () => {
    const there = await load(options);
    const own = Float32Array.of(9, 1, 2, 9);
    const view = { data: own.subarray(1, 3), shape: [1, 2] };
    assert.deepEqual([...(await there.scaledDotProductAttention(view, view, view)).output.data], [1, 2]);
    assert.deepEqual([...own], [9, 1, 2, 9]);
    const moved = { data: Float32Array.of(1, 2), shape: [1, 2] };
    const { output } = await there.scaledDotProductAttention(moved, moved, moved, { transfer: true });
    assert.deepEqual([...output.data], [1, 2]);
    assert.equal(moved.data.length, 0);
    there.dispose();
  });

  test('E-080: errors are AttentionErrors with the code and message of the function, and leave nothing', async () => {
    const here = await loadBuild('baseline');
    const there = await load(options);
    const { allocated } = there.memory;
    const wrong = [
      (a) => a.scaledDotProductAttention(q, k, row),
      (a) => a.scaledDotProductAttention(q, k, v, { isCausal: 'upper' }),
      (a) => a.rope(q, {}),
      (a) => a.keyValueCache({ numKvHeads: 1, headDim: 3, capacity: 4, dtype: 'q8_0' }),
      (a) => a.tensor(null, [2 ** 30]),
      (a) => a.tensor(new Float64Array(2), [2]),
    ];
    for (const call of wrong) {
      const want = await (async () => call(here))().then(assert.fail, (reason) => reason);
      const got = await call(there).then(assert.fail, (reason) => reason);
      assert(got instanceof AttentionError);
      assert.deepEqual([got.code, got.message], [want.code, want.message]);
    }
    await failure(
      there.tensor(() => {}, [1]),
      'INVALID_OPTION',
      /^tensor: arguments must be plain data, got /,
    );
    await failure(there.softmax(row, { signal: 3 }), 'INVALID_OPTION', /signal must be an AbortSignal/);
    assert.equal((await there.softmax(row)).data.length, 24);
    assert.equal(there.memory.allocated, allocated);
    there.dispose();
    await failure(there.softmax(row), 'DISPOSED', /^softmax: the instance must be there still/);
  });

  test('objects: dispose frees, use after it throws, objects of another instance are refused', async () => {
    const [one, two] = [await load(options), await load(options)];
    const { allocated } = one.memory;
    const tensor = await one.tensor(null, [1000]);
    await failure(two.softmax(tensor), 'DISPOSED', /an argument must be there still/);
    tensor.dispose();
    tensor.dispose();
    await one.softmax(row);
    assert.equal(one.memory.allocated, allocated);
    assert.equal(tensor.disposed, true);
    await failure(tensor.read(), 'DISPOSED', /WorkerTensor.read: it must be there still/);
    await failure(one.softmax(tensor), 'DISPOSED', /softmax: an argument/);
    const kept = await one.tensor(null, [4]);
    const waiting = kept.read();
    one.dispose();
    one.dispose();
    await failure(waiting, 'DISPOSED', /the instance/);
    assert.equal(kept.disposed, true);
    two.dispose();
  });

  test('dispose does not reach calls that were made before it', async () => {
    const there = await load(options);
    const { allocated } = there.memory;
    const tensor = await there.tensor(row.data, [3, 8]);
    const here = await loadBuild('baseline');
    const calls = [there.softmax(row), there.softmax(tensor), there.gelu(tensor)];
    tensor.dispose();
    const want = [here.softmax(row), here.softmax(row), here.gelu(row)];
    assert.deepEqual(await Promise.all(calls), want);
    await there.softmax(row);
    assert.equal(there.memory.allocated, allocated);
    there.dispose();
  });

  test('a worker that does not start is LOAD_FAILED', async () => {
    const missing = { ...options, createWorker: () => new Worker(new URL('none.js', import.meta.url)) };
    await failure(load(missing), 'LOAD_FAILED', /^load: the worker must run, got .*none\.js/);
    await failure(load({ createWorker: 1 }), 'INVALID_OPTION', /createWorker must be a function/);
    await failure(load({ wasm: 1 }), 'INVALID_OPTION', /got 'wasm'/);
    await failure(load({ ...options, wasmBinary: new Uint8Array(8) }), 'LOAD_FAILED', /the baseline build must load/);
    await failure(load({ ...options, signal: AbortSignal.abort() }), 'ABORTED', /^load: signal/);
  });

  test('a worker of one’s own', async () => {
    const file = join(folder, 'own.mjs');
    const host = new URL('../dist/worker-host.js', import.meta.url);
    writeFileSync(file, `import { serveWorker } from ${JSON.stringify(host.href)};\nserveWorker();\n`);
    const there = await load({ ...options, createWorker: () => new Worker(file) });
    assert.equal((await there.softmax(row)).data.length, 24);
    there.dispose();
  });
});
