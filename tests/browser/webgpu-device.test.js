// How the WebGPU backend treats a device: what it makes, binds, reads back and lets go of.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { random } from '../support/random.js';
import { assertClose } from '../support/tensors.js';
import { arrange } from './watched-device.js';
import { useGpuPage } from './webgpu.js';

const used = useGpuPage({ arrange });

describe('a device and what is asked of it', () => {
  const g = random(1);
  const x = g.tensor([1, 2, 20, 16]);

  test('F-102: 1000 calls make no buffer and no pipeline beyond those of the first ones', async () => {
    const { first, last, groups, memory } = await used.page.evaluate(async (q) => {
      const { device, seen } = await window.watchedDevice();
      const attention = await window.packageEntry.load({ backend: 'webgpu', device });
      const kept = await attention.tensor(null, q.shape);
      const calls = [
        () => attention.rmsNorm(q),
        () => attention.rmsNorm(q, { out: kept }),
        () => attention.scaledDotProductAttention(q, q, q, { isCausal: true, needWeights: true }),
      ];
      // Twice: what a call makes first is used again once the device has said that it could be made.
      for (let n = 0; n < 2; ++n) for (const call of calls) await call();
      const { allocated } = attention.memory;
      const { groups: asked, ...counts } = seen;
      for (let n = 0; n < 1000; ++n) await calls[n % 3]();
      const end = { ...seen, groups: 0 };
      const usage = { ...attention.memory };
      attention.dispose();
      device.destroy();
      return { first: counts, last: end, groups: asked.slice(0, 3), memory: [usage.allocated - allocated, seen.live] };
    }, x);
    assert.equal(last.created, first.created);
    assert.equal(last.live, first.live);
    assert.equal(last.pipelines, first.pipelines);
    assert.equal(last.submits, first.submits + 1000);
    assert.deepEqual(memory, [0, 0]);
    // Rows of the norm one by one; two tiles of 32 rows and keys for the weights.
    assert.deepEqual(groups, [
      [40, 1],
      [40, 1],
      [2, 1],
    ]);
  });

  test('a chain over resident tensors reads nothing back, and gives what wasm gives', async () => {
    const { reads, result, want } = await used.page.evaluate(async (q) => {
      const { device, seen } = await window.watchedDevice();
      const attention = await window.packageEntry.load({ backend: 'webgpu', device });
      const [source, turned, output] = await Promise.all([
        attention.tensor(q.data, q.shape),
        attention.tensor(null, q.shape),
        attention.tensor(null, q.shape),
      ]);
      // Not awaited one by one: calls run in the order they are made.
      await Promise.all([
        attention.rope(source, { style: 'half', out: turned }),
        attention.scaledDotProductAttention(turned, turned, source, { isCausal: true, out: output }),
        attention.silu(output, { gate: source, out: output }),
      ]);
      const before = seen.reads;
      const data = await output.read();
      window.wasm ??= await window.packageEntry.load({ threads: 1 });
      const rows = window.wasm.rope(q, { style: 'half' });
      const plain = window.wasm.scaledDotProductAttention(rows, rows, q, { isCausal: true }).output;
      attention.dispose();
      device.destroy();
      return { reads: before, result: data, want: window.wasm.silu(plain, { gate: q }) };
    }, x);
    assert.equal(reads, 0);
    assertClose(result, want.data, { absolute: 1e-4 });
  });

  test('more groups than fit into one dimension use a second', async () => {
    const { groups, result, want } = await used.page.evaluate(async (q) => {
      const { device, seen } = await window.watchedDevice({ maxComputeWorkgroupsPerDimension: 7 });
      const attention = await window.packageEntry.load({ backend: 'webgpu', device });
      const y = await attention.softmax(q);
      attention.dispose();
      device.destroy();
      window.wasm ??= await window.packageEntry.load({ threads: 1 });
      return { groups: seen.groups, result: y, want: window.wasm.softmax(q) };
    }, x);
    assert.deepEqual(groups, [[7, 6]]);
    assertClose(result, want, { absolute: 1e-5 });
  });

  test('F-095: tensors beyond the binding limit are split over items, heads and rows', async () => {
    const inputs = {
      q: g.tensor([2, 4, 40, 24]),
      k: g.tensor([2, 2, 40, 24]),
      weight: g.tensor([70, 24]),
      bias: g.tensor([70]).data,
      mask: g.booleans([2, 4, 40, 40]),
      few: g.tensor([2, 4, 2, 24]),
    };
    const most = 4608; // the 3840 bytes of a head's keys, and what alignment takes
    const { bound, webgpu, wasm, refused } = await used.page.evaluate(
      async ({ given, limit }) => {
        const { q, k, weight, bias, mask, few } = given;
        const run = async (attention) => {
          const kept = await attention.tensor(q.data, q.shape);
          const cache = await attention.keyValueCache({ batch: 2, numKvHeads: 2, headDim: 24, capacity: 40 });
          await cache.append(k, k);
          const answers = {
            causal: await attention.scaledDotProductAttention(kept, k, k, { isCausal: true, returnLse: true }),
            masked: await attention.scaledDotProductAttention(q, k, k, { attnMask: mask }),
            few: await attention.scaledDotProductAttention(few, k, k, { returnLse: true, isCausal: 'bottom-right' }),
            cached: await cache.attend(few, { returnLse: true }),
            turned: await attention.rope(kept, { style: 'half' }),
            linear: await attention.linear(kept, weight, bias),
            norm: await attention.layerNorm(kept),
            silu: await attention.silu(kept, { gate: q }),
            half: await attention.softmax(await attention.tensor(new Uint16Array(7680).fill(0x3c00), [2, 4, 40, 24])),
          };
          kept.dispose();
          cache.dispose();
          return answers;
        };
        const { device, seen } = await window.watchedDevice({ maxStorageBufferBindingSize: limit });
        const attention = await window.packageEntry.load({ backend: 'webgpu', device });
        window.wasm ??= await window.packageEntry.load({ threads: 1 });
        const answers = { webgpu: await run(attention), wasm: await run(window.wasm) };
        const long = { data: new Float32Array(60 * 24), shape: [60, 24] };
        const code = await window.outcome(attention.scaledDotProductAttention(long, long, long));
        const largest = seen.bound;
        attention.dispose();
        device.destroy();
        return { ...answers, bound: largest, refused: code };
      },
      { given: inputs, limit: most },
    );
    for (const [name, want] of Object.entries(wasm)) {
      const got = webgpu[name];
      if (want.output) {
        assertClose(got.output, want.output, { absolute: 1e-4, what: name });
        if (want.lse) assertClose(got.lse, want.lse, { absolute: 1e-4, what: `${name}, lse` });
      } else {
        assertClose(got, want, { absolute: 1e-4, relative: 1e-3, what: name });
      }
    }
    assert.ok(bound <= most, `bound ${bound} bytes at once`);
    assert.equal(refused, 'OUT_OF_MEMORY');
  });

  test('tiles are as large as the limits of the device allow', async () => {
    const rows = { q: g.tensor([1, 1, 260, 8]), weight: g.tensor([8, 8]) };
    const { heights, answers, want } = await used.page.evaluate(async ({ q, weight }) => {
      const run = async (attention) => [
        (await attention.scaledDotProductAttention(q, q, q, { isCausal: true })).output,
        await attention.linear(q, weight),
      ];
      const roomy = { maxComputeWorkgroupStorageSize: 32768 };
      const devices = [
        await window.watchedDevice({}, roomy),
        await window.watchedDevice({ maxComputeWorkgroupStorageSize: 16384 }),
        await window.watchedDevice({ maxComputeInvocationsPerWorkgroup: 64 }, roomy),
      ];
      const results = { heights: [], answers: [] };
      for (const { device, seen } of devices) {
        const attention = await window.packageEntry.load({ backend: 'webgpu', device });
        results.answers.push(await run(attention));
        results.heights.push(seen.code.match(/const TY = \d+u/g));
        attention.dispose();
        device.destroy();
      }
      window.wasm ??= await window.packageEntry.load({ threads: 1 });
      return { ...results, want: await run(window.wasm) };
    }, rows);
    assert.deepEqual(heights, [
      ['const TY = 16u', 'const TY = 16u'],
      ['const TY = 8u', 'const TY = 16u'],
      ['const TY = 8u', 'const TY = 8u'],
    ]);
    for (const [output, projected] of answers) {
      assertClose(output, want[0], { absolute: 1e-4 });
      assertClose(projected, want[1], { absolute: 1e-4 });
    }
  });

  test('few rows and many keys: the keys are divided among workgroups, and what they give is merged', async () => {
    const inputs = { q: g.tensor([1, 2, 8, 16]), k: g.tensor([1, 1, 1100, 16]) };
    const { groups, result, want } = await used.page.evaluate(async ({ q, k }) => {
      const { device, seen } = await window.watchedDevice();
      const attention = await window.packageEntry.load({ backend: 'webgpu', device });
      const options = { isCausal: 'bottom-right', windowSize: [900, -1], returnLse: true };
      const answer = await attention.scaledDotProductAttention(q, k, k, options);
      attention.dispose();
      device.destroy();
      window.wasm ??= await window.packageEntry.load({ threads: 1 });
      return { groups: seen.groups, result: answer, want: window.wasm.scaledDotProductAttention(q, k, k, options) };
    }, inputs);
    // Sixteen rows of the one key/value head by fours, five ranges of 256 keys; then a thread for each output.
    assert.deepEqual(groups, [
      [20, 1],
      [4, 1],
    ]);
    for (const name of ['output', 'lse']) assertClose(result[name], want[name], { absolute: 1e-4, what: name });
  });

  test('F-097: where the device has no shader-f16, no shader asks for it', async () => {
    const { code, features } = await used.page.evaluate(async (q) => {
      const { device, seen } = await window.watchedDevice();
      const attention = await window.packageEntry.load({ backend: 'webgpu', device });
      const half = { data: new Uint16Array(q.data.length).fill(0x3c00), shape: q.shape };
      await attention.scaledDotProductAttention(half, half, half, { needWeights: true });
      const has = attention.capabilities().float16;
      attention.dispose();
      device.destroy();
      return { code: seen.code, features: has };
    }, x);
    assert.equal(features, false);
    assert.ok(code.length > 1000);
    assert.doesNotMatch(code, /enable f16/);
  });

  test('F-103: the caller gives a device, which is used and never destroyed; or sees that of the package', async () => {
    const state = await used.page.evaluate(async (q) => {
      const { device } = await window.watchedDevice();
      let destroyed = 0;
      const destroy = device.destroy.bind(device);
      device.destroy = () => {
        ++destroyed;
        destroy();
      };
      const attention = await window.packageEntry.load({ backend: 'webgpu', device });
      await attention.rmsNorm(q);
      const isSame = attention.device === device;
      attention.dispose();
      const again = await window.packageEntry.load({ backend: 'webgpu', device });
      const works = await window.outcome(again.rmsNorm(q));
      again.dispose();
      const calls = destroyed;
      destroy();
      return { isSame, works, calls, own: window.attention.device instanceof GPUDevice };
    }, x);
    assert.deepEqual(state, { isSame: true, works: 'done', calls: 0, own: true });
  });

  test('what does not fit is OUT_OF_MEMORY before anything is made, and the instance works on', async () => {
    const state = await used.page.evaluate(async () => {
      const { device, seen } = await window.watchedDevice({ maxBufferSize: 1008 });
      const attention = await window.packageEntry.load({ backend: 'webgpu', device });
      const codes = [
        await window.outcome(attention.tensor(null, [253])),
        await window.outcome(attention.keyValueCache({ numKvHeads: 1, headDim: 4, capacity: 100 })),
        await window.outcome(attention.tensor(null, [252])),
      ];
      const { allocated } = attention.memory;
      attention.dispose();
      device.destroy();
      return { codes, allocated, live: seen.live };
    });
    assert.deepEqual(state, { codes: ['OUT_OF_MEMORY', 'OUT_OF_MEMORY', 'done'], allocated: 1008, live: 0 });
  });

  test('errors are rejections with the codes of wasm, and leave nothing behind', async () => {
    const state = await used.page.evaluate(async (q) => {
      const { attention } = window;
      const before = attention.memory.allocated;
      const kept = await attention.tensor(q.data, q.shape);
      kept.dispose();
      const codes = [];
      for (const call of [
        () => attention.scaledDotProductAttention(q, q, q, { isCausal: 'no' }),
        () => attention.rmsNorm({ data: q.data, shape: [3] }),
        () => attention.rmsNorm(kept),
        () => kept.read(),
        () => attention.keyValueCache({ numKvHeads: 1, headDim: 32, capacity: 4, dtype: 'int8' }),
        () => attention.scaledDotProductAttention(q, q, q, { precision: 'int8' }),
      ]) {
        codes.push(await window.outcome(call()));
      }
      let data = '';
      try {
        (await attention.tensor(null, [1])).data;
      } catch (error) {
        data = error.code;
      }
      return { codes, data, grown: attention.memory.allocated - before };
    }, x);
    const codes = ['INVALID_OPTION', 'INVALID_SHAPE', 'DISPOSED', 'DISPOSED', 'UNSUPPORTED', 'UNSUPPORTED'];
    assert.deepEqual(state, { codes, data: 'UNSUPPORTED', grown: 16 });
  });
});

test("'auto' takes wasm where the only adapter computes on the processor, and says so", async () => {
  const { backend, reasons } = await used.page.evaluate(
    async () => (await window.packageEntry.load({ backend: 'auto', threads: 1 })).info,
  );
  assert.equal(backend, 'wasm');
  assert.match(reasons[0], /webgpu: the only adapter computes on the processor \(.*swiftshader/);
});

test('capabilities() tells which caches there are, and they are', async () => {
  const { told, made } = await used.page.evaluate(async () => {
    const outcomes = {};
    for (const dtype of ['float32', 'float16', 'bfloat16', 'int8', 'q8_0', 'q4_0']) {
      outcomes[dtype] = await window.outcome(
        window.attention.keyValueCache({ numKvHeads: 1, headDim: 32, capacity: 4, dtype }),
      );
    }
    return { told: window.attention.capabilities().cacheDtypes, made: outcomes };
  });
  for (const [dtype, outcome] of Object.entries(made)) {
    assert.equal(outcome, told.includes(dtype) ? 'done' : 'UNSUPPORTED', dtype);
  }
});
