// What the WebGPU backend does when its device goes away.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { random } from '../support/random.js';
import { assertClose } from '../support/tensors.js';
import { arrange } from './watched-device.js';
import { useGpuPage } from './webgpu.js';

const used = useGpuPage({ arrange });

describe('F-099: a device that goes away', () => {
  const x = random(2).tensor([1, 2, 20, 16]);

  test('what is pending is DEVICE_LOST, the next call gets a new device, what was on the old one says so', async () => {
    const state = await used.page.evaluate(async (q) => {
      const attention = await window.packageEntry.load({ backend: 'webgpu' });
      const kept = await attention.tensor(q.data, q.shape);
      const cache = await attention.keyValueCache({ numKvHeads: 2, headDim: 16, capacity: 20 });
      await cache.append(q, q);
      const gone = attention.device;
      const pending = attention.scaledDotProductAttention(q, q, q);
      gone.destroy();
      const codes = { pending: await window.outcome(pending) };
      const [first, second] = [attention.rmsNorm(q), attention.rmsNorm(q)];
      codes.next = [await window.outcome(first), await window.outcome(second)];
      codes.tensor = await window.outcome(attention.rmsNorm(kept));
      codes.read = await window.outcome(kept.read());
      codes.cache = await window.outcome(cache.attend(q));
      codes.append = await window.outcome(cache.append(q, q));
      const fresh = await attention.tensor(q.data, q.shape);
      codes.fresh = await window.outcome(attention.rmsNorm(fresh));
      const { backend, reasons } = attention.info;
      const isNew = attention.device !== gone;
      kept.dispose();
      attention.dispose();
      return { codes, backend, reasons, isNew };
    }, x);
    assert.deepEqual(state.codes, {
      pending: 'DEVICE_LOST',
      next: ['done', 'done'],
      tensor: 'DEVICE_LOST',
      read: 'DEVICE_LOST',
      cache: 'DEVICE_LOST',
      append: 'DEVICE_LOST',
      fresh: 'done',
    });
    assert.equal(state.backend, 'webgpu');
    assert.equal(state.isNew, true);
    assert.match(state.reasons[0], /the device must stay, got lost/);
  });

  test("the caller's device: under 'auto' wasm goes on, with promises; under 'webgpu' the next call says it", async () => {
    const state = await used.page.evaluate(async (q) => {
      const { load } = window.packageEntry;
      const [one, two] = [await window.watchedDevice(), await window.watchedDevice()];
      const auto = await load({ backend: 'auto', device: one.device, threads: 1 });
      const only = await load({ backend: 'webgpu', device: two.device });
      const backends = [auto.info.backend];
      one.device.destroy();
      two.device.destroy();
      await Promise.all([one.device.lost, two.device.lost]);
      const promise = auto.softmax(q);
      const codes = [
        promise instanceof Promise,
        await window.outcome(only.softmax(q)),
        await window.outcome(only.softmax(q)),
      ];
      const { data } = await promise;
      backends.push(auto.info.backend);
      const later = auto.softmax(q);
      const cache = await auto.keyValueCache({ numKvHeads: 2, headDim: 16, capacity: 20 });
      const appended = cache.append(q, q);
      const kinds = [later instanceof Promise, appended instanceof Promise];
      window.wasm ??= await load({ threads: 1 });
      const { reasons } = auto.info;
      auto.dispose();
      only.dispose();
      return { backends, codes, kinds, reasons, data, want: window.wasm.softmax(q).data };
    }, x);
    assert.deepEqual(state.backends, ['webgpu', 'wasm']);
    assert.deepEqual(state.codes, [true, 'DEVICE_LOST', 'DEVICE_LOST']);
    assert.deepEqual(state.kinds, [true, true]);
    assert.match(state.reasons[0], /lost.*it was the device that load\(\) was given/);
    assertClose(state.data, state.want, { absolute: 1e-5 });
  });

  test('dispose is not a loss: later calls and pending ones are DISPOSED', async () => {
    const codes = await used.page.evaluate(async (q) => {
      const attention = await window.packageEntry.load({ backend: 'webgpu' });
      await attention.rmsNorm(q);
      const pending = attention.scaledDotProductAttention(q, q, q);
      attention.dispose();
      attention.dispose();
      return [await window.outcome(pending), await window.outcome(attention.rmsNorm(q))];
    }, x);
    assert.deepEqual(codes, ['DISPOSED', 'DISPOSED']);
  });
});
