// attention-wasm/worker: the same answers as without it, calls that stop when they are told to, and no traces.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { contextOf } from '../bindings/instances.js';
import { AttentionError, load } from '../bindings/worker.js';
import { watch } from '../bindings/worker-slices.js';
import { loadBuild } from './support/builds.js';
import { random } from './support/random.js';

const g = random(93);
const options = { simd: 'baseline', threads: 1 };
const folder = mkdtempSync(join(tmpdir(), 'attention-wasm-worker-'));
after(() => rmSync(folder, { recursive: true }));

/** The error of a promise. */
async function failure(promise, code, message) {
  const error = await promise.then(
    () => assert.fail('it did not reject'),
    (reason) => reason,
  );
  assert(error instanceof AttentionError, error.stack);
  assert.equal(error.code, code, error.message);
  assert.match(error.message, message);
  return error;
}

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
      Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter(
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
    const host = new URL('../bindings/worker-host.js', import.meta.url);
    writeFileSync(file, `import { serveWorker } from ${JSON.stringify(host.href)};\nserveWorker();\n`);
    const there = await load({ ...options, createWorker: () => new Worker(file) });
    assert.equal((await there.softmax(row)).data.length, 24);
    there.dispose();
  });
});

const T = 4096;
const long = g.tensor([1, 8, T, 64]);

/** Aborts `call(signal)` a little after it has begun, and checks that it stops at once. */
async function abortOf(call, begun) {
  const controller = new AbortController();
  const promise = call(controller.signal);
  promise.catch(() => {});
  await begun;
  const aborted = performance.now();
  controller.abort(new Error('enough'));
  const error = await failure(promise, 'ABORTED', /signal must not be aborted, got enough$/);
  assert.equal(error.cause.message, 'enough');
  const ms = performance.now() - aborted;
  assert(ms < 100, `it took ${ms} ms to stop`);
  assert.deepEqual(getEventListeners(controller.signal, 'abort'), []);
}

describe('stopping', () => {
  test('E-093: a signal stops a long call within 100 ms, frees its memory, and keeps what was kept', async () => {
    const there = await load(options);
    const kept = await there.tensor(row.data, [3, 8]);
    const { allocated } = there.memory;
    let begin;
    const begun = new Promise((done) => (begin = done));
    const seen = [];
    const onProgress = (progress) => seen.push(progress) && begin();
    await abortOf((signal) => there.scaledDotProductAttention(long, long, long, { signal, onProgress }), begun);
    assert(seen.length > 0 && seen.at(-1).done < seen[0].total, JSON.stringify(seen.at(-1)));
    assert.equal(there.memory.allocated, allocated);
    assert.deepEqual(await kept.read(), row.data);
    there.dispose();
  });

  test('a call that looks at no flag is stopped with its worker; the next call finds a fresh one', async () => {
    const there = await load(options);
    const kept = await there.tensor(row.data, [3, 8]);
    const weights = { isCausal: true, needWeights: { rows: [0] }, signal: null };
    const half = { data: new Uint16Array(2 ** 23), shape: [2048, 4096] };
    const begun = new Promise((done) => setTimeout(done, 400));
    // Weights that are not packed: one kernel, of seconds.
    await abortOf((signal) => there.linear(half, half, null, { signal }), begun);
    assert.deepEqual(there.memory, { allocated: 0, total: 0 });
    assert.equal(kept.disposed, true);
    await failure(kept.read(), 'DISPOSED', /lost when a worker was ended/);
    const waiting = [there.softmax(row), there.scaledDotProductAttention(q, k, v, { ...weights, isCausal: false })];
    const here = await loadBuild('baseline');
    assert.deepEqual(await waiting[0], here.softmax(row));
    assert.equal((await waiting[1]).weights.shape[2], 1);
    there.dispose();
  });

  test('a call that waits for its turn is taken out, and others go on', async () => {
    const there = await load(options);
    const controller = new AbortController();
    const first = there.softmax(row);
    const second = there.softmax(row, { signal: controller.signal });
    const third = there.softmax(row);
    controller.abort();
    await failure(second, 'ABORTED', /^softmax: signal/);
    assert.deepEqual(await first, await third);
    await failure(there.softmax(row, { signal: AbortSignal.abort() }), 'ABORTED', /^softmax: signal/);
    assert.deepEqual(getEventListeners(controller.signal, 'abort'), []);
    there.dispose();
  });

  test('a signal of many calls has one listener, and stops them all', async () => {
    const there = await load(options);
    const controller = new AbortController();
    const { signal } = controller;
    const calls = Array.from({ length: 50 }, () => there.softmax(long, { signal }));
    assert.equal(getEventListeners(signal, 'abort').length, 1);
    await calls[0];
    assert.equal(getEventListeners(signal, 'abort').length, 1);
    controller.abort();
    const outcomes = await Promise.allSettled(calls);
    assert(outcomes.filter(({ reason }) => reason?.code === 'ABORTED').length > 40);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    there.dispose();
  });

  test('progress is told of every slice, and the end of it', async () => {
    const there = await load(options);
    const seen = [];
    const short = g.tensor([1, 8, 1024, 64]);
    await there.scaledDotProductAttention(short, short, short, { onProgress: (progress) => seen.push(progress) });
    const { total } = seen[0];
    assert(total > 2);
    assert.deepEqual(
      seen,
      Array.from({ length: total + 1 }, (_, done) => ({ step: 'attention', done, total })),
    );
    there.dispose();
  });
});

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

/** Runs a module in a Node of its own. */
function runScript(script) {
  const file = join(folder, 'script.mjs');
  writeFileSync(
    file,
    script.replaceAll('ENTRY', JSON.stringify(new URL('../bindings/worker.js', import.meta.url).href)),
  );
  const inherited = process.execArgv.filter((flag) => flag.startsWith('--experimental-wasm'));
  const run = spawnSync(process.execPath, [...inherited, '--expose-gc', file], { encoding: 'utf8', timeout: 120_000 });
  assert.equal(run.status, 0, run.stderr);
  assert.equal(run.stderr, '');
  return { ended: performance.timeOrigin + performance.now(), lines: run.stdout.trim().split('\n') };
}

describe('traces of a worker', () => {
  test('E-086: a script ends by itself within a second, with the worker alive', () => {
    const { ended, lines } = runScript(`
      import { load } from ENTRY;
      const attention = await load({ simd: 'baseline', threads: 2 });
      const x = { data: new Float32Array(8 * 256 * 64).fill(1), shape: [8, 256, 64] };
      const { output } = await attention.scaledDotProductAttention(x, x, x);
      console.log(output.data[5]);
      console.log(performance.timeOrigin + performance.now());`);
    assert.equal(lines[0], '1');
    assert(ended - Number(lines[1]) < 1000, `${ended - Number(lines[1])} ms`);
  });

  test('E-086: 200 loads and disposes leave no memory, listener or worker', { timeout: 120_000 }, () => {
    const { lines } = runScript(`
      import { load } from ENTRY;
      const settle = () => new Promise((done) => setTimeout(done, 100));
      const x = { data: Float32Array.of(1, 2), shape: [1, 2] };
      const once = async () => {
        const attention = await load({ simd: 'scalar' });
        await attention.tensor(new Float32Array(1 << 18), [1 << 18]);
        await attention.scaledDotProductAttention(x, x, x);
        attention.dispose();
      };
      const seen = () => {
        gc();
        return { rss: process.memoryUsage().rss / 2 ** 20, events: process.eventNames().length,
          resources: process.getActiveResourcesInfo().filter((name) => !/Timeout|Pipe|TTY|FSReq/.test(name)).sort() };
      };
      for (let n = 0; n < 40; ++n) await once();
      await settle();
      const before = seen();
      for (let n = 0; n < 200; ++n) await once();
      await settle();
      console.log(JSON.stringify([before, seen()]));`);
    const [before, after] = JSON.parse(lines[0]);
    assert.deepEqual(after.resources, before.resources);
    assert.equal(after.events, before.events);
    // Each holds 2 MiB of wasm and 1 MiB of tensor, and a worker some MiB more: all of them would be over 1,000.
    assert(after.rss - before.rss < 60, `${before.rss} → ${after.rss} MiB`);
  });
});
