// attention-wasm/worker: calls that stop when they are told to, word of how far they have come, and no traces.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { load } from 'attention-wasm/worker';
import { loadBuild } from './support/builds.js';
import { random } from './support/random.js';
import { failure, options } from './support/worker.js';

const g = random(94);
const folder = mkdtempSync(join(tmpdir(), 'attention-wasm-worker-'));
after(() => rmSync(folder, { recursive: true }));

const [q, k, v] = [g.tensor([2, 4, 5, 8]), g.tensor([2, 2, 7, 8]), g.tensor([2, 2, 7, 6])];
const row = g.tensor([3, 8]);
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

/** Runs a module in a Node of its own. */
function runScript(script) {
  const file = join(folder, 'script.mjs');
  writeFileSync(file, script.replaceAll('ENTRY', JSON.stringify(new URL('../dist/worker.js', import.meta.url).href)));
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
