// Models in a worker: the same tokens and logits as without it, a stream that stops, and no traces.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { Transformer } from 'attention-wasm/transformer';
import { load, WorkerTransformer, WorkerTransformerCache } from 'attention-wasm/worker';
import { loadBuild } from './support/builds.js';
import { configs, weightsFor } from './support/models.js';
import { failure, options } from './support/worker.js';

const config = configs['LLaMA, grouped heads, tied'];
const weights = weightsFor(config);
const settings = { maxTokens: 6, temperature: 0.9, seed: 3 };

async function both() {
  const [here, there] = [await loadBuild('baseline'), await load(options)];
  return { there, here: await Transformer.load(here, { config, weights }) };
}

async function collected(stream) {
  const steps = [];
  for await (const step of stream) steps.push(step);
  return steps;
}

test('load, forward, logitLens and disabledHeads give the same bits, and progress is told', async () => {
  const { there, here } = await both();
  const seen = [];
  const model = await WorkerTransformer.load(there, { config, weights, onProgress: (progress) => seen.push(progress) });
  assert(model instanceof WorkerTransformer);
  assert.deepEqual(model.info, here.info);
  assert(seen.length > 3 && seen.every(({ loaded, total }) => loaded <= total));
  assert.equal(seen.at(-1).loaded, seen[0].total);
  const capture = { attention: true, hidden: true };
  const [got, want] = [await model.forward([1, 2, 3], { capture }), here.forward([1, 2, 3], { capture })];
  assert.deepEqual(got, want);
  assert.deepEqual(await model.logitLens(want.hidden[1]), here.logitLens(want.hidden[1]));
  await model.disableHeads([[0, 1]]);
  here.disabledHeads = [[0, 1]];
  assert.deepEqual(model.disabledHeads, here.disabledHeads);
  assert.deepEqual(await model.forward([1, 2, 3]), here.forward([1, 2, 3]));
  there.dispose();
  assert.equal(model.disposed, true);
});

test('generate() streams the same tokens, with a cache and without, and the cache tells its length', async () => {
  const { there, here } = await both();
  const model = await WorkerTransformer.load(there, { config, weights });
  assert.deepEqual(await collected(model.generate([1, 2], settings)), await collected(here.generate([1, 2], settings)));
  const cache = await model.createCache({ capacity: 16 });
  assert(cache instanceof WorkerTransformerCache);
  assert.deepEqual([cache.length, cache.capacity, cache.dtype], [0, 16, 'float32']);
  const own = here.createCache({ capacity: 16 });
  const lengths = [];
  for await (const { token } of model.generate([1, 2], { ...settings, cache })) lengths.push([token, cache.length]);
  const want = [];
  for await (const { token } of here.generate([1, 2], { ...settings, cache: own })) want.push([token, own.length]);
  assert.deepEqual(lengths, want);
  assert.equal(cache.bytes, own.bytes);
  const snapshot = await cache.snapshot();
  await cache.truncate(3);
  assert.equal(cache.length, 3);
  await cache.restore(snapshot);
  assert.equal(cache.length, own.length);
  assert.deepEqual(await model.forward([4], { cache }), here.forward([4], { cache: own }));
  await cache.clear();
  assert.equal(cache.length, 0);
  there.dispose();
});

test('a stream that is left early, or stopped by its signal, leaves nothing; the model goes on', async () => {
  const { there } = await both();
  const model = await WorkerTransformer.load(there, { config, weights });
  await model.forward([1]);
  const { allocated } = there.memory;
  for await (const { token } of model.generate([1, 2], { ...settings, maxTokens: 50 })) {
    assert(Number.isInteger(token));
    break;
  }
  await model.forward([1]);
  assert.equal(there.memory.allocated, allocated);
  const controller = new AbortController();
  const { signal } = controller;
  const stream = model.generate([1, 2], { ...settings, maxTokens: 50, signal });
  await stream.next();
  controller.abort(new Error('enough'));
  await failure(stream.next(), 'ABORTED', /^Transformer.generate: signal must not be aborted, got enough$/);
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
  await model.forward([1]);
  assert.equal(there.memory.allocated, allocated);
  assert.equal(model.disposed, false);
  there.dispose();
});

test('a signal stops a long forward within 100 ms, and the model and its cache are as before', async () => {
  const { there } = await both();
  const large = { ...config, hidden_size: 256, intermediate_size: 1024, num_hidden_layers: 8, head_dim: 64 };
  const long = { ...large, max_position_embeddings: 4096 };
  const model = await WorkerTransformer.load(there, { config: long, weights: weightsFor(long), transfer: true });
  const cache = await model.createCache({ capacity: 2048 });
  await model.forward([1, 2, 3], { cache });
  const controller = new AbortController();
  const tokens = Array.from({ length: 1500 }, (_, n) => n % 7);
  const call = model.forward(tokens, { cache, signal: controller.signal });
  setTimeout(() => controller.abort(), 100);
  await failure(call, 'ABORTED', /^Transformer.forward: signal/);
  assert.equal(model.disposed, false);
  assert.equal(cache.length, 3);
  assert.equal((await model.forward([4], { cache })).logits.shape[0], 1);
  assert.equal(cache.length, 4);
  // In slices: the same bits.
  const here = await Transformer.load(await loadBuild('baseline'), { config: long, weights: weightsFor(long) });
  assert.deepEqual(await model.forward(tokens.slice(0, 500)), here.forward(tokens.slice(0, 500)));
  there.dispose();
});

test('every call takes onProgress and transfer beside its own options', async () => {
  const { there, here } = await both();
  const model = await WorkerTransformer.load(there, { config, weights });
  const more = { onProgress: () => {}, transfer: false };
  const cache = await model.createCache({ capacity: 16, ...more });
  const own = here.createCache({ capacity: 16 });
  assert.deepEqual(await model.forward([1, 2], { cache, ...more }), here.forward([1, 2], { cache: own }));
  assert.deepEqual(
    await collected(model.generate([3], { ...settings, cache, ...more })),
    await collected(here.generate([3], { ...settings, cache: own })),
  );
  const keys = await there.keyValueCache({ numKvHeads: 1, headDim: 4, capacity: 4, ...more });
  const row = { data: Float32Array.of(1, 2, 3, 4), shape: [1, 4] };
  await keys.append(row, row, more);
  assert.deepEqual((await keys.attend(row, more)).output.data, row.data);
  there.dispose();
});

test('errors are those of the functions; what is disposed of is gone', async () => {
  const { there, here } = await both();
  const { allocated } = there.memory;
  const wrong = { config: { ...config, model_type: 'mamba' }, weights };
  await failure(WorkerTransformer.load(there, wrong), 'UNSUPPORTED', /^Transformer.load: .*got 'mamba'$/);
  await failure(WorkerTransformer.load({}, { config, weights }), 'INVALID_OPTION', /attention must be what load\(\)/);
  await failure(WorkerTransformer.load(there), 'INVALID_OPTION', /^Transformer.load: config must be/);
  const stop = AbortSignal.abort();
  await failure(
    WorkerTransformer.load(there, { config, weights, signal: stop }),
    'ABORTED',
    /^Transformer.load: signal/,
  );
  const model = await WorkerTransformer.load(there, { config, weights });
  const want = await (async () => here.forward([99]))().then(assert.fail, (error) => error);
  await failure(model.forward([99]), want.code, new RegExp(`^${want.message.replaceAll(/[[\]()]/g, '\\$&')}$`));
  await failure(model.generate([1], { maxTokens: -1 }).next(), 'INVALID_OPTION', /maxTokens must be/);
  const cache = await model.createCache({ capacity: 4 });
  cache.dispose();
  await failure(model.forward([1], { cache }), 'DISPOSED', /an argument must be there still/);
  model.dispose();
  await there.softmax({ data: Float32Array.of(1), shape: [1, 1] });
  assert.equal(there.memory.allocated, allocated);
  await failure(model.forward([1]), 'DISPOSED', /Transformer.forward: it must be there still/);
  there.dispose();
});
