// What load() makes of the adapters and devices that an engine may answer with, where there is no GPU at all: a
// navigator.gpu of the test's own.
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { load } from 'attention-wasm';
import { errorNaming } from './support/field.js';

const original = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
const setGpu = (gpu) => Object.defineProperty(globalThis, 'navigator', { value: { gpu }, configurable: true });
afterEach(() => {
  if (original) Object.defineProperty(globalThis, 'navigator', original);
  else delete globalThis.navigator;
});

/** The limits that WebGPU promises everywhere. */
const kDefaultLimits = {
  maxBufferSize: 2 ** 28,
  maxStorageBufferBindingSize: 2 ** 27,
  maxComputeWorkgroupStorageSize: 16384,
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupSizeX: 256,
  maxComputeWorkgroupSizeY: 256,
  maxComputeWorkgroupsPerDimension: 65535,
};

/** An adapter that remembers what is asked of it, and a device that can do nothing. */
function adapterWith({ limits = kDefaultLimits, features = [], refuse, info = { vendor: 'a vendor' } } = {}) {
  const asked = [];
  const adapter = {
    limits,
    features: new Set(features),
    info,
    requestDevice: async (descriptor) => {
      asked.push(descriptor);
      for (const [name, value] of Object.entries(descriptor.requiredLimits)) {
        if (value > limits[name]) throw new TypeError(`${name} is more than the adapter has`);
      }
      for (const name of descriptor.requiredFeatures) assert.ok(adapter.features.has(name), name);
      if (refuse) throw new Error(refuse);
      return deviceWith({ limits, features });
    },
  };
  return { adapter, asked };
}

function deviceWith({ limits = kDefaultLimits, features = [] } = {}) {
  return { limits, features: new Set(features), lost: new Promise(() => {}), destroy() {}, createBuffer() {} };
}

describe('which backend', () => {
  const kMissing = {
    'no navigator.gpu': [undefined, /this engine has no WebGPU/],
    'a null adapter': [{ requestAdapter: async () => null }, /no adapter answered/],
    'an adapter that is refused': [
      { requestAdapter: () => Promise.reject(new Error('blocked by policy')) },
      /requestAdapter was refused \(blocked by policy\)/,
    ],
    'a device that is refused': [
      { requestAdapter: async () => adapterWith({ refuse: 'out of devices' }).adapter },
      /requestDevice was refused \(out of devices\)/,
    ],
  };
  for (const [name, [gpu, reason]] of Object.entries(kMissing)) {
    test(`${name}: 'auto' is wasm with the reason, 'webgpu' rejects with it`, async () => {
      setGpu(gpu);
      const attention = await load({ backend: 'auto', threads: 1 });
      assert.equal(attention.info.backend, 'wasm');
      assert.match(attention.info.reasons[0], new RegExp(`^webgpu: .*${reason.source}`));
      assert.equal(attention.capabilities().backend, 'wasm');
      assert.equal(attention.device, null);
      attention.dispose();
      await assert.rejects(load({ backend: 'webgpu' }), (error) => {
        assert.match(error.message, reason);
        return errorNaming('UNSUPPORTED', "got 'webgpu'")(error);
      });
    });
  }

  test("an adapter that computes on the processor: not for 'auto', but for 'webgpu'", async () => {
    const info = { vendor: 'google', architecture: 'swiftshader', isFallbackAdapter: true };
    setGpu({ requestAdapter: async () => adapterWith({ info }).adapter });
    const auto = await load({ backend: 'auto', threads: 1 });
    assert.match(auto.info.reasons[0], /only adapter computes on the processor \(google swiftshader\)/);
    auto.dispose();
    const { info: got } = await load({ backend: 'webgpu' });
    assert.deepEqual([got.backend, got.adapter, got.reasons], ['webgpu', 'google swiftshader', []]);
  });

  test('a device of the caller is taken without asking for an adapter', async () => {
    setGpu({ requestAdapter: () => assert.fail('asked') });
    const device = deviceWith();
    for (const backend of ['webgpu', 'auto']) {
      const attention = await load({ backend, device });
      assert.equal(attention.info.backend, 'webgpu');
      assert.equal(attention.device, device);
    }
  });

  test('wasm does not ask for an adapter', async () => {
    setGpu({ requestAdapter: () => assert.fail('asked') });
    (await load({ threads: 1 })).dispose();
  });
});

describe('what is asked of an adapter', () => {
  test('F-095: at most what it has, and at most what is of use', async () => {
    for (const [limits, want] of [
      [kDefaultLimits, {}],
      [
        { ...kDefaultLimits, maxComputeWorkgroupStorageSize: 65536, maxComputeInvocationsPerWorkgroup: 1024 },
        { maxComputeWorkgroupStorageSize: 32768, maxComputeInvocationsPerWorkgroup: 256 },
      ],
      [{ ...kDefaultLimits, maxBufferSize: 2 ** 32, maxStorageBufferBindingSize: 2 ** 31 }, {}],
      [{ ...kDefaultLimits, maxStorageBufferBindingSize: 2 ** 20, maxComputeWorkgroupSizeX: 128 }, {}],
    ]) {
      const { adapter, asked } = adapterWith({ limits });
      setGpu({ requestAdapter: async () => adapter });
      await load({ backend: 'webgpu' });
      const { maxComputeWorkgroupsPerDimension, ...rest } = limits;
      assert.ok(maxComputeWorkgroupsPerDimension);
      assert.deepEqual(asked[0].requiredLimits, { ...rest, ...want });
    }
  });

  test('F-097: features that it has, and no others', async () => {
    for (const features of [[], ['shader-f16'], ['subgroups', 'timestamp-query', 'texture-compression-bc']]) {
      const { adapter, asked } = adapterWith({ features });
      setGpu({ requestAdapter: async () => adapter });
      const attention = await load({ backend: 'webgpu' });
      assert.deepEqual(
        [...asked[0].requiredFeatures].sort(),
        features.filter((name) => !name.startsWith('texture')).sort(),
      );
      assert.equal(attention.capabilities().float16, features.includes('shader-f16'));
      // Subgroups need a feature of the language as well, which this engine hasn't.
      assert.equal(attention.capabilities().subgroups, false);
    }
  });
});
