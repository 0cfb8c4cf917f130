// Failures that users of other wasm packages met, as tests of the whole kind: memory, growth, errors, files, types.
// More of them: tests/load*.test.js, memory*.test.js, errors.test.js, worker.test.js, and tests/matrix.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as main from 'attention-wasm';
import * as onnx from 'attention-wasm/onnx';
import * as safetensors from 'attention-wasm/safetensors';
import * as transformer from 'attention-wasm/transformer';
import * as worker from 'attention-wasm/worker';
import { builds, loadBuild } from './support/builds.js';
import { tensors } from './support/field.js';
import { random } from './support/random.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const kMiB = 2 ** 20;

/** Engines before 2025 have no Float16Array: one that holds bits stands in, which is all that the package asks of it. */
globalThis.Float16Array ??= class Float16Array extends Uint16Array {
  get [Symbol.toStringTag]() {
    return 'Float16Array';
  }
};

for (const build of builds()) {
  const attention = await loadBuild(build);

  describe(`memory and calls, ${build}`, () => {
    test('E-072: results are copies that growth does not touch; a view of a tensor is made anew at each read', async () => {
      const fresh = await loadBuild(build);
      const { q, k, v } = tensors('E-072', { B: 2, H: 3, Tq: 4, Tk: 6, D: 5, Dv: 7 });
      const options = { isCausal: 'bottom-right', needWeights: true, returnLse: true };
      const results = fresh.scaledDotProductAttention(q, k, v, options);
      const want = structuredClone(results);
      const tensor = fresh.tensor(q.data, q.shape);
      const view = tensor.data;
      const { total } = fresh.memory;
      fresh.softmax({ data: new Float32Array(16 * kMiB), shape: [16, kMiB] });
      assert(fresh.memory.total >= total + 64 * kMiB);
      assert.deepEqual(results, want);
      assert.deepEqual(tensor.data, q.data);
      // Shared memory keeps old views alive; other memory empties them, so that stale reads show.
      if (!(view.buffer instanceof SharedArrayBuffer)) assert.equal(view.length, 0);
      fresh.dispose();
    });

    test('E-074: 100,000 small calls, then 200 of all sizes and refused ones, leave memory as it was', () => {
      const row = { data: Float32Array.of(1, 2), shape: [1, 2] };
      const g = random(74);
      const varied = () => {
        const [H, T, D] = [g.integer(1, 4), g.integer(0, 40), g.integer(1, 40)];
        const x = g.tensor([H, T, D]);
        const wrong = g.tensor([H, T, D + 1]);
        attention.scaledDotProductAttention(x, x, x, { isCausal: true, needWeights: true });
        attention.layerNorm(x);
        assert.throws(() => attention.scaledDotProductAttention(x, wrong, x), main.AttentionError);
        assert.throws(() => attention.scaledDotProductAttention(x, x, x, { scale: Number.NaN }), main.AttentionError);
      };
      for (let n = 0; n < 200; ++n) varied();
      const before = attention.memory;
      for (let n = 0; n < 100_000; ++n) attention.scaledDotProductAttention(row, row, row);
      for (let n = 0; n < 200; ++n) varied();
      assert.deepEqual(attention.memory, before);
    });

    test('E-081: data cross in bulk, one copy for each tensor, in less than a tenth of the call', () => {
      const shape = [1, 16, 1024, 64];
      const { data } = random(81).tensor(shape);
      const x = { data, shape };
      const { set } = Float32Array.prototype;
      const shares = [];
      for (let call = 0; call < 5; ++call) {
        const counts = [];
        let spent = 0;
        const start = performance.now();
        try {
          Object.getPrototypeOf(Float32Array.prototype).set = function (...args) {
            const begin = performance.now();
            Reflect.apply(set, this, args);
            spent += performance.now() - begin;
            counts.push(args[0].length);
          };
          attention.scaledDotProductAttention(x, x, x);
        } finally {
          Object.getPrototypeOf(Float32Array.prototype).set = set;
        }
        shares.push(spent / (performance.now() - start));
        assert.deepEqual(counts, [kMiB, kMiB, kMiB]);
      }
      // Other programs may take the processor away in the middle of a copy: the least share is what it costs.
      assert(Math.min(...shares) < 0.1, `${shares} of the call`);
    });

    test('E-092: Float16Array and its bits are the same input, and the result has the type of q', () => {
      const { q, k } = tensors('E-092', { H: 2, Tq: 3, Tk: 3, D: 8 });
      const bits = (x) => ({ ...x, data: Uint16Array.from(x.data, (value) => 0x3800 + Math.round(value * 50)) });
      const [qBits, kBits] = [bits(q), bits(k)];
      const halves = ({ data, shape }) => ({ data: new globalThis.Float16Array(data.buffer), shape });
      const want = attention.scaledDotProductAttention(qBits, kBits, kBits).output;
      const { output } = attention.scaledDotProductAttention(halves(qBits), halves(kBits), kBits);
      assert.equal(output.data[Symbol.toStringTag], 'Float16Array');
      assert.deepEqual(new Uint16Array(output.data.buffer), want.data);
      const mixed = attention.scaledDotProductAttention(q, halves(kBits), kBits).output;
      assert(mixed.data instanceof Float32Array);
      for (const data of [
        new Float64Array(48),
        Array(48).fill(0),
        new Int32Array(48),
        new DataView(qBits.data.buffer),
      ]) {
        assert.throws(() => attention.scaledDotProductAttention({ data, shape: q.shape }, k, k), {
          code: 'INVALID_DTYPE',
        });
      }
    });

    test('E-094: what a build does not have is named, with the way out', () => {
      const { q } = tensors('E-094', { Tq: 9, Tk: 9, D: 4 });
      const call = () => attention.scaledDotProductAttention(q, q, q, { precision: 'int8' });
      if (build.startsWith('relaxed')) {
        assert.equal(call().output.data.length, 36);
        return;
      }
      assert.throws(call, {
        code: 'UNSUPPORTED',
        message: /^scaledDotProductAttention: precision must be 'float32' in builds without relaxed SIMD.*got 'int8'$/,
      });
    });
  });
}

describe('what is shipped', () => {
  /** JavaScript of the package as npm packs it. */
  const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const scripts = readdirSync(join(root, 'dist')).filter((name) => name.endsWith('.js'));

  test('E-082: no code is made from text anywhere', () => {
    assert(files.includes('dist') && scripts.includes('inline.js') && scripts.length > 20);
    for (const name of scripts) {
      const text = readFileSync(join(root, 'dist', name), 'utf8');
      assert.doesNotMatch(text, /\beval\s*\(|new Function\b|\bFunction\s*\(['"`]|setTimeout\s*\(['"`]/, name);
    }
  });

  test('E-091: the samples that tsc checks use every name that is exported', () => {
    const samples = ['sample', 'transformer', 'worker'].map((name) =>
      readFileSync(join(root, `tests/types/${name}.ts`), 'utf8'),
    );
    const used = new Set(samples.join('\n').match(/\w+/g));
    const onnxUsed = new Set(readFileSync(join(root, 'tests/types/onnx.ts'), 'utf8').match(/\w+/g));
    for (const [entry, names] of Object.entries({ main, safetensors, transformer, worker })) {
      for (const name of Object.keys(names)) assert(used.has(name), `${entry}: ${name}`);
    }
    for (const name of Object.keys(onnx)) assert(onnxUsed.has(name), `onnx: ${name}`);
  });

  test('classes keep their names, which messages and consoles show', () => {
    const classes = Object.entries({ ...main, ...transformer, ...worker }).filter(([, value]) => value?.prototype);
    assert(classes.length > 9, `${classes.length} classes and functions`);
    for (const [name, value] of classes) if (/^[A-Z]/.test(name)) assert.equal(value.name, name);
    const given = { rotaryDim: new main.AttentionError('ABORTED', '') };
    assert.throws(() => main.ropeFrequencies(given), { message: /got an object of type AttentionError$/ });
  });

  test('E-084: one module, however often and in whatever way it is imported', async () => {
    const again = await import('attention-wasm');
    assert.equal(again, main);
    assert.equal(again.AttentionError, worker.AttentionError);
    const file = join(root, 'build', `require-${process.pid}.cjs`); // inside the package, so that its name leads to it
    writeFileSync(
      file,
      `const { load, AttentionError } = require('attention-wasm');
      const row = { data: Float32Array.of(1, 2), shape: [1, 2] };
      Promise.all([load({ threads: 1 }), import('attention-wasm')]).then(([attention, module]) => {
        const { output } = attention.scaledDotProductAttention(row, row, row);
        console.log([...output.data].join(), module.AttentionError === AttentionError);
      });`,
    );
    const { stdout, stderr, status } = spawnSync(process.execPath, ['--no-warnings', file], { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    assert.equal(stdout, '1,2 true\n');
  });
});
