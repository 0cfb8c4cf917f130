// attention-wasm/worker on the GPU: what dispose() gives back, calls that their signal stops, and devices that are lost
// or missing.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { setTimeout as later } from 'node:timers/promises';
import { configs, weightsFor } from '../support/models.js';
import { assertClose } from '../support/tensors.js';
import { bringWorker } from './gpu-worker.js';
import { arrange } from './watched-device.js';
import { useGpuPage } from './webgpu.js';

const used = useGpuPage({ arrange });
const config = configs['LLaMA, grouped heads, tied'];
const weights = weightsFor(config);

/** Resolves when the next worker of a page has ended. @param {import('playwright-core').Page} page */
const endOfNextWorker = (page) =>
  new Promise((done) => {
    page.once('worker', (worker) => {
      worker.once('close', () => done('ended'));
    });
  });

describe('a worker on the GPU', () => {
  before(() => used.page.evaluate(bringWorker));

  test('dispose() gives memory back: that of each object, and with the instance the worker', async () => {
    const closed = endOfNextWorker(used.page);
    const { grown, left, codes, ended, end } = await used.page.evaluate(
      async ({ config: given, weights: tensors }) => {
        const { load, WorkerTransformer } = window.workerEntry;
        const attention = await load({ backend: 'webgpu' });
        const row = { data: Float32Array.of(1, 2, 3, 4), shape: [1, 4] };
        /** Everything that stays in the worker, used once. */
        const make = async () => {
          const tensor = await attention.tensor(row.data, row.shape);
          const packed = await attention.packLinear({ data: new Float32Array(32), shape: [8, 4] });
          await attention.linear(tensor, packed);
          const cache = await attention.keyValueCache({ numKvHeads: 1, headDim: 4, capacity: 100 });
          await cache.append(row, row);
          const model = await WorkerTransformer.load(attention, { config: given, weights: tensors });
          const own = await model.createCache({ capacity: 8 });
          await model.forward([1, 2], { cache: own });
          return [tensor, packed, cache, own, model];
        };
        const allocated = async (objects) => {
          for (const object of objects) object.dispose();
          await attention.softmax(row);
          return attention.memory.allocated;
        };
        const before = await allocated(await make()); // what the instance has for its calls is there now
        const objects = await make();
        const state = { grown: (await allocated([])) - before, left: (await allocated(objects)) - before, codes: [] };
        const [tensor, , cache, , model] = objects;
        for (const use of [() => tensor.read(), () => cache.attend(row), () => model.forward([1])]) {
          state.codes.push(await window.outcome(use()));
        }
        const running = window.outcome(attention.softmax(row));
        attention.dispose();
        state.ended = [await running, await window.outcome(attention.softmax(row))];
        return { ...state, end: attention.memory };
      },
      { config, weights },
    );
    // The weights of the model alone are more.
    assert.ok(grown > 20_000, `${grown} bytes`);
    assert.equal(left, 0);
    assert.deepEqual(codes, ['DISPOSED', 'DISPOSED', 'DISPOSED']);
    assert.deepEqual(ended, ['DISPOSED', 'DISPOSED']);
    assert.deepEqual(end, { allocated: 0, total: 0 });
    assert.equal(await Promise.race([closed, later(10_000, 'still there', { ref: false })]), 'ended');
  });

  test('signal: a long call rejects at once, before the GPU is through; what is kept stays', async () => {
    const { error, order, kept, read, grown } = await used.page.evaluate(async () => {
      const { attention } = window;
      const row = { data: Float32Array.of(1, 2, 3, 4), shape: [1, 4] };
      const long = { data: new Float32Array(2 * 2048 * 64).fill(0.1), shape: [1, 2, 2048, 64] };
      const tensor = await attention.tensor(row.data, row.shape);
      await attention.scaledDotProductAttention(row, row, row);
      const before = attention.memory.allocated;
      const controller = new AbortController();
      const { signal } = controller;
      const seen = [];
      const stopped = attention.scaledDotProductAttention(long, long, long, { signal }).catch((reason) => {
        seen.push('stopped');
        return { code: reason.code, message: reason.message, cause: reason.cause.message };
      });
      const behind = attention.scaledDotProductAttention(row, row, row).then(() => seen.push('behind'));
      setTimeout(() => controller.abort(new Error('enough')), 50);
      const told = await stopped;
      await behind;
      const isKept = !tensor.disposed;
      const copy = await tensor.read();
      tensor.dispose();
      await attention.scaledDotProductAttention(row, row, row);
      return { error: told, order: seen, kept: isKept, read: copy, grown: attention.memory.allocated - before };
    });
    const message = 'scaledDotProductAttention: signal must not be aborted, got enough';
    assert.deepEqual(error, { code: 'ABORTED', message, cause: 'enough' });
    assert.deepEqual(order, ['stopped', 'behind']);
    assert.deepEqual([kept, [...read]], [true, [1, 2, 3, 4]]);
    assert.ok(grown <= 0, `${grown} bytes more`);
  });

  test('signal: what a stopped call would have given is let go of', async () => {
    const { codes, grown } = await used.page.evaluate(
      async ({ config: given, weights: tensors }) => {
        const { attention } = window;
        const row = { data: Float32Array.of(1, 2, 3, 4), shape: [1, 4] };
        const model = await window.modelOn(attention, { config: given, weights: tensors });
        await model.forward([1, 2]);
        const before = attention.memory.allocated;
        const outcomes = [];
        for (const call of [
          (signal) => attention.tensor(null, [5000], null, { signal }),
          (signal) => attention.packLinear({ data: new Float32Array(32), shape: [8, 4] }, null, { signal }),
          (signal) => attention.keyValueCache({ numKvHeads: 1, headDim: 4, capacity: 100, signal }),
          (signal) => model.createCache({ capacity: 8, signal }),
          (signal) => window.modelOn(attention, { config: given, weights: tensors, signal }),
        ]) {
          const controller = new AbortController();
          const promise = call(controller.signal); // on its way to the worker
          controller.abort();
          outcomes.push(await window.outcome(promise));
        }
        await attention.softmax(row);
        await attention.softmax(row);
        const more = attention.memory.allocated - before;
        model.dispose();
        return { codes: outcomes, grown: more };
      },
      { config, weights },
    );
    assert.deepEqual(codes, ['ABORTED', 'ABORTED', 'ABORTED', 'ABORTED', 'ABORTED']);
    assert.equal(grown, 0);
  });

  test('signal: a model whose pass is stopped stays, with its cache as it was; so does one that is stopped while it writes', async () => {
    const large = { ...config, hidden_size: 128, intermediate_size: 512, head_dim: 32, max_position_embeddings: 1024 };
    const { codes, lengths, got, want } = await used.page.evaluate(
      async ({ config: given, weights: tensors }) => {
        const { attention } = window;
        const model = await window.modelOn(attention, { config: given, weights: tensors });
        const cache = await model.createCache({ capacity: 600 });
        await model.forward([1, 2, 3], { cache });
        const controller = new AbortController();
        const tokens = Array.from({ length: 500 }, (_, n) => n % 7);
        const pass = model.forward(tokens, { cache, signal: controller.signal });
        setTimeout(() => controller.abort(), 50);
        const outcomes = [await window.outcome(pass)];
        const counts = [cache.length];
        const step = await model.forward([4], { cache });
        counts.push(cache.length);
        const other = new AbortController();
        const write = async () => {
          for await (const { token } of model.generate([5], { maxTokens: 500, cache, signal: other.signal })) {
            if (token >= 0 && cache.length === 7) other.abort();
          }
        };
        outcomes.push(await window.outcome(write()));
        counts.push(cache.length);
        const answer = (await model.forward([1, 2, 3, 4])).logits;
        outcomes.push(model.disposed ? 'gone' : 'there');
        model.dispose();
        return { codes: outcomes, lengths: counts, got: step.logits, want: answer };
      },
      { config: large, weights: weightsFor(large) },
    );
    assert.deepEqual(codes, ['ABORTED', 'ABORTED', 'there']);
    assert.deepEqual(lengths, [3, 4, 7]);
    assertClose(got, want, { absolute: 1e-4 });
  });

  test('F-099: a device that goes away in the worker: calls go on with another one, and info says so', async () => {
    const { codes, before, after } = await used.page.evaluate(async () => {
      const code = `import { serveWorker } from '${location.origin}/dist/worker-host.js';
      const { requestDevice } = GPUAdapter.prototype;
      GPUAdapter.prototype.requestDevice = async function (...given) {
        const device = await requestDevice.apply(this, given);
        const channel = new BroadcastChannel('device');
        channel.onmessage = async () => {
          channel.onmessage = null;
          device.destroy();
          await device.lost;
          channel.postMessage('lost');
        };
        return device;
      };
      serveWorker();`;
      const file = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
      const createWorker = () => new Worker(file, { type: 'module' });
      const attention = await window.workerEntry.load({ backend: 'webgpu', createWorker });
      const row = { data: Float32Array.of(1, 2, 3, 4), shape: [1, 4] };
      const tensor = await attention.tensor(row.data, row.shape);
      const infos = [attention.info];
      const channel = new BroadcastChannel('device');
      const lost = new Promise((done) => {
        channel.onmessage = done;
      });
      channel.postMessage('lose it');
      await lost;
      channel.close();
      const outcomes = [await window.outcome(attention.softmax(row)), await window.outcome(tensor.read())];
      infos.push(attention.info);
      // A signal stops calls on the new device, too.
      const controller = new AbortController();
      const stopped = attention.softmax(row, { signal: controller.signal });
      controller.abort();
      outcomes.push(await window.outcome(stopped), await window.outcome(attention.softmax(row)));
      attention.dispose();
      return { codes: outcomes, before: infos[0], after: infos[1] };
    });
    assert.deepEqual(codes, ['done', 'DEVICE_LOST', 'ABORTED', 'done']);
    assert.deepEqual([before.backend, before.reasons], ['webgpu', []]);
    assert.equal(after.backend, 'webgpu');
    assert.match(after.reasons[0], /the device must stay/);
  });

  test("'auto' takes wasm where the only adapter computes on the processor, and says so", async () => {
    const { info, output } = await used.page.evaluate(async () => {
      const attention = await window.workerEntry.load({ backend: 'auto', threads: 1 });
      const row = { data: Float32Array.of(1, 2), shape: [1, 2] };
      const answer = await attention.scaledDotProductAttention(row, row, row);
      const { info: told } = attention;
      attention.dispose();
      return { info: told, output: answer.output };
    });
    assert.equal(info.backend, 'wasm');
    assert.match(info.reasons[0], /webgpu: the only adapter computes on the processor \(.*swiftshader/);
    assert.deepEqual([...output.data], [1, 2]);
  });
});
