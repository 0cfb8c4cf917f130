// Every rule of the package: its code, its message, and that nothing stays behind and the instance works on.

// biome-ignore assist/source/organizeImports: it comes first, because it counts what runs from then on
import { unreachedLines } from './support/coverage.js';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { kCaches, kCacheUses } from './refused/caches.js';
import { kCalls } from './refused/calls.js';
import { kForwards, kLayers, kStates, layer, x } from './refused/layers.js';
import { kNormResidents, kNorms } from './refused/norms.js';
import { kOptions } from './refused/options.js';
import { kResidents } from './refused/residents.js';
import { kRopes, kScalings } from './refused/rope.js';
import { kTensors } from './refused/tensors.js';
import { f32, k, q, v } from './refused/zeros.js';
import { builds, loadBuild } from './support/builds.js';
import { AttentionError, errorCodes, load } from './support/package.js';

/** The error of a call, which must fail in this way. */
function assertFails(call, code, message) {
  assert.throws(call, (error) => {
    assert(error instanceof AttentionError, `${error?.stack}`);
    assert(error instanceof Error);
    assert.equal(error.name, 'AttentionError');
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    assert.match(error.message, /^[\w.]+: .+, got /s);
    return true;
  });
}

/** The instance answers rightly, and holds no more than before. */
function assertWorks(attention, allocated) {
  const row = { data: Float32Array.of(1, 2), shape: [1, 2] };
  assert.deepEqual([...attention.scaledDotProductAttention(row, row, row).output.data], [1, 2]);
  assert.equal(attention.memory.allocated, allocated);
}

for (const build of builds()) {
  const attention = await loadBuild(build);
  const other = await loadBuild(build);
  const { allocated } = attention.memory;
  const run = (name, call, code, message) =>
    test(name, () => {
      assertFails(call, code, message);
      assertWorks(attention, allocated);
    });

  describe(`E-080: what is refused, ${build}`, () => {
    describe('tensors', () => {
      for (const [name, tensors, code, message] of kTensors)
        run(name, () => attention.scaledDotProductAttention(...tensors), code, message);
    });
    describe('options', () => {
      for (const [name, options, code, message] of kOptions)
        run(name, () => attention.scaledDotProductAttention(q, k, v, options), code, message);
    });
    if (!build.startsWith('relaxed')) {
      run(
        'bytes without the instruction for them',
        () => attention.scaledDotProductAttention(q, k, v, { precision: 'int8' }),
        'UNSUPPORTED',
        /precision must be 'float32' in builds without relaxed SIMD/,
      );
    }
    describe('calls', () => {
      for (const [name, call, code, message] of [...kCalls, ...kRopes, ...kNorms])
        run(name, () => call(attention), code, message);
    });
    describe('layers', () => {
      for (const [name, options, code, message] of kLayers)
        run(name, () => attention.multiHeadAttention(options), code, message);
      for (const [name, dict, code, message] of kStates)
        run(`state: ${name}`, () => attention.multiHeadAttention(layer).loadStateDict(dict), code, message);
      run(
        'forward before loadStateDict',
        () => attention.multiHeadAttention(layer).forward(x),
        'INVALID_OPTION',
        /forward: parameters must be there \(loadStateDict\) before, got none/,
      );
      run(
        'stateDict before loadStateDict',
        () => attention.multiHeadAttention(layer).stateDict(),
        'INVALID_OPTION',
        /stateDict: parameters must be there/,
      );
      run(
        'in_proj_weight beside another width',
        () =>
          attention
            .multiHeadAttention({ ...layer, kDim: 5 })
            .loadStateDict({ in_proj_weight: f32(18, 6), 'out_proj.weight': f32(6, 6) }),
        'INVALID_SHAPE',
        /in_proj_weight must come with kDim and vDim equal to dModel, got \[5, 6, 6\]/,
      );
      run(
        'x as keys of another width',
        () => attention.multiHeadAttention({ ...layer, kDim: 5 }).forward(x),
        'INVALID_OPTION',
        /parameters must be there/,
      );
    });
    describe('caches', () => {
      for (const [name, options, code, message] of kCaches)
        run(name, () => attention.keyValueCache(options), code, message);
    });
    describe('residents', () => {
      for (const [name, call, code, message] of [...kResidents, ...kNormResidents, ...kCacheUses])
        test(name, () => {
          /** @type {{ dispose(): void }[]} */
          const made = [];
          const make = (resident) => made.push(resident) && resident;
          assertFails(() => call(attention, make, other), code, message);
          for (const resident of made) resident.dispose();
          assertWorks(attention, allocated);
        });
    });
    describe('forward', () => {
      for (const [name, more, input, options, code, message] of kForwards)
        test(name, () => {
          const mha = attention.multiHeadAttention({ ...layer, ...more });
          const width = (more.headDim ?? 3) * 2;
          const weights = { q_proj: [width, 6], k_proj: [width, 6], v_proj: [width, 6], out_proj: [6, width] };
          mha.loadStateDict(
            Object.fromEntries(Object.entries(weights).map(([key, shape]) => [`${key}.weight`, f32(...shape)])),
          );
          const held = attention.memory.allocated;
          assertFails(() => mha.forward(input, options), code, message);
          assert.equal(attention.memory.allocated, held);
          mha.dispose();
          assertWorks(attention, allocated);
        });
    });
  });
}

describe('what is refused without an instance', () => {
  for (const [name, call, message] of kScalings) test(name, () => assertFails(call, 'INVALID_OPTION', message));

  const kLoads = [
    ['options that are no object', 1, 'INVALID_OPTION', /options must be an object/],
    ['an unknown option', { wasm: true }, 'INVALID_OPTION', /got 'wasm'/],
    [
      'an unknown backend',
      { backend: 'cuda' },
      'INVALID_OPTION',
      /backend must be among wasm, webgpu, auto, got 'cuda'/,
    ],
    [
      'an unknown simd',
      { simd: 'avx' },
      'INVALID_OPTION',
      /simd must be among auto, relaxed, baseline, scalar, got 'avx'/,
    ],
    ['no threads', { threads: 0 }, 'INVALID_OPTION', /threads must be 'auto' or an integer of 1 to 16, got 0/],
    ['a fraction of threads', { threads: 1.5 }, 'INVALID_OPTION', /threads must be 'auto' or an integer/],
    ['threads as text', { threads: '2' }, 'INVALID_OPTION', /threads must be among auto, got '2'/],
    [
      'threads in the scalar build',
      { simd: 'scalar', threads: 2 },
      'UNSUPPORTED',
      /threads must be 1 here \(the scalar build has none\), got 2/,
    ],
    [
      'webgpu where there is none',
      { backend: 'webgpu' },
      'UNSUPPORTED',
      /backend must be 'wasm' here \(this engine has no WebGPU.*\), got 'webgpu'/,
    ],
    ['a device that is none', { backend: 'webgpu', device: {} }, 'INVALID_OPTION', /device must be a GPUDevice/],
    ['wasmUrl as a number', { wasmUrl: 1 }, 'INVALID_OPTION', /wasmUrl must be a string or a URL/],
    ['wasmBinary as text', { wasmBinary: 'x' }, 'INVALID_OPTION', /wasmBinary must be an ArrayBuffer or a view of one/],
  ];
  for (const [name, options, code, message] of kLoads) {
    test(`load: ${name}`, async () => {
      const error = await load(options).then(assert.fail, (reason) => reason);
      assertFails(
        () => {
          throw error;
        },
        code,
        message,
      );
    });
  }
});

test('the codes are those of the contract', () => {
  const names = [
    'INVALID_SHAPE',
    'INVALID_OPTION',
    'INVALID_DTYPE',
    'OUT_OF_MEMORY',
    'CAPACITY',
    'DISPOSED',
    'UNSUPPORTED',
    'LOAD_FAILED',
    'DEVICE_LOST',
    'ABORTED',
  ];
  assert.deepEqual(Object.keys(errorCodes), names);
});

test('every rule of the checks is broken by a test here', async () => {
  const layers = ['linear', 'multi-head', 'state-dict', 'forward', 'cache', 'norm'];
  const subjects = ['load', 'attention', 'visibility', 'varlen', 'rope', ...layers];
  const files = [
    'check',
    ...subjects.map((subject) => `check-${subject}`),
    'rope-config',
    'attention',
    'tensor',
    'key-value-cache',
  ];
  assert.deepEqual(
    await unreachedLines(
      files.map((name) => `/bindings/${name}.js`),
      /\brefuse\('/,
    ),
    [],
  );
});
