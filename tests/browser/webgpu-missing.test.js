// A browser that has WebGPU but no adapter: what most machines without a graphics driver are.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useGpuPage } from './webgpu.js';

const used = useGpuPage({ webgpu: false });

test('there is no adapter here', async () => {
  assert.equal(await used.page.evaluate(async () => Boolean(await navigator.gpu?.requestAdapter())), false);
});

test("'auto' is wasm with the reason, and computes", async () => {
  const { info, output } = await used.page.evaluate(async () => {
    const attention = await window.packageEntry.load({ backend: 'auto', threads: 1 });
    const row = { data: Float32Array.of(1, 2), shape: [1, 2] };
    return { info: attention.info, output: attention.scaledDotProductAttention(row, row, row).output };
  });
  assert.equal(info.backend, 'wasm');
  assert.match(info.reasons[0], /^webgpu: (no adapter answered|this engine has no WebGPU|requestAdapter was refused)/);
  assert.deepEqual([...output.data], [1, 2]);
});

test("'webgpu' rejects with the reason", async () => {
  const error = await used.page.evaluate(() =>
    window.packageEntry.load({ backend: 'webgpu' }).then(
      () => null,
      ({ code, message }) => ({ code, message }),
    ),
  );
  assert.equal(error.code, 'UNSUPPORTED');
  assert.match(error.message, /backend must be 'wasm' here \(.+\), got 'webgpu'/);
});

test('in a worker it is the same', async () => {
  const { info, error } = await used.page.evaluate(async () => {
    const { load } = await import('/dist/worker.js');
    const attention = await load({ backend: 'auto', threads: 1 });
    attention.dispose();
    const refused = await load({ backend: 'webgpu' }).then(
      () => null,
      ({ code, message }) => ({ code, message }),
    );
    return { info: attention.info, error: refused };
  });
  assert.equal(info.backend, 'wasm');
  assert.match(info.reasons[0], /^webgpu: /);
  assert.equal(error.code, 'UNSUPPORTED');
  assert.match(error.message, /backend must be 'wasm' here \(.+\), got 'webgpu'/);
});

test('wasm alone loads no file of the GPU code', async () => {
  const page = await used.open();
  const names = [];
  page.on('request', (request) => names.push(new URL(request.url()).pathname));
  await page.evaluate(async () => {
    const attention = await window.packageEntry.load({ threads: 1 });
    attention.dispose();
  });
  assert.ok(
    names.some((name) => name.endsWith('.wasm')),
    `${names}`,
  );
  assert.deepEqual(
    names.filter((name) => name.includes('/webgpu/')),
    [],
  );
});
