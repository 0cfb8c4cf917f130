// The packed package in Node: each version, module kind, thread and flag.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { assertResult, exercise, nodeOf, nodes, project, runNode } from './support.js';

const kImports = "import { load } from 'attention-wasm';";
const folder = project({
  'esm.js': exercise(kImports),
  'one.js': exercise(kImports, { options: '{ threads: 1 }' }),
  'require.cjs': exercise("const { load } = require('attention-wasm');"),
  'dynamic.cjs': exercise("const load = async (...args) => (await import('attention-wasm')).load(...args);"),
  'inline.js': exercise("import { load } from 'attention-wasm/inline';"),
  'worker.js': exercise("import { load } from 'attention-wasm/worker';"),
  'thread.js': `import { Worker } from 'node:worker_threads';
    new Worker(new URL('one.js', import.meta.url));`,
  'server.js': `const before = [Object.keys(globalThis), process.eventNames()].join();
    for (const name of ['window', 'self', 'document', 'location'])
      if (name in globalThis && name !== 'navigator') throw new Error(name);
    globalThis.fetch = () => { throw new Error('fetched'); };
    const entries = ['', '/worker', '/inline', '/onnx', '/safetensors', '/transformer'];
    for (const entry of entries) await import('attention-wasm' + entry);
    if ([Object.keys(globalThis), process.eventNames()].join() !== before) throw new Error('importing left traces');
    await import('./esm.js');`,
  'half.js': `import { load } from 'attention-wasm';
    const attention = await load();
    const bits = Uint16Array.of(0x3c00, 0x4000, 0x4200, 0x4400);
    const shape = [2, 2];
    const has = typeof Float16Array === 'function';
    const data = has ? new Float16Array(bits.buffer) : bits;
    const { output } = attention.scaledDotProductAttention({ data, shape }, { data: bits, shape }, { data, shape });
    const same = attention.scaledDotProductAttention({ data: bits, shape }, { data: bits, shape }, { data: bits, shape });
    const type = output.data[Symbol.toStringTag];
    console.log(JSON.stringify([has, type, [...new Uint16Array(output.data.buffer)].join() === [...same.output.data].join()]));`,
});

for (const node of nodes) {
  describe(node, () => {
    const version = Number(node.split('-')[1]);
    const simd = version < 22 ? 'baseline' : 'relaxed';
    const run = (file, ...flags) => runNode(node, folder, ['--no-warnings', ...flags, file]);

    for (const [name, file] of Object.entries({
      'E-083: an ES module': 'esm.js',
      'E-084: require()': 'require.cjs',
      'E-084: import() from CommonJS': 'dynamic.cjs',
      'E-083: the single file': 'inline.js',
      'E-093: the functions in a worker': 'worker.js',
      'E-083: in a worker thread': 'thread.js',
      'E-084: on a server, without the globals of a page': 'server.js',
    })) {
      test(name, () => assertResult(run(file), { simd }));
    }
    test('E-082: with code from strings disallowed', () => {
      assertResult(run('esm.js', '--disallow-code-generation-from-strings'), { simd });
      assertResult(run('worker.js', '--disallow-code-generation-from-strings'), { simd });
    });
    test('E-092: Float16Array, where the version has it', () => {
      const [has, type, same] = run('half.js');
      assert.equal(has, version >= 24);
      assert.deepEqual([type, same], [has ? 'Float16Array' : 'Uint16Array', true]);
    });
    test('the alias is the version it says', () => {
      const { version: installed } = JSON.parse(readFileSync(join(nodeOf(node), '../../package.json'), 'utf8'));
      assert(installed.startsWith(`${version}.`));
    });
  });
}

test('the tarball holds what is shipped, and no script runs at its installation', () => {
  const root = join(folder, 'node_modules/attention-wasm');
  const { scripts, dependencies = {} } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare', 'prepublish'])
    assert(!(name in scripts), name);
  assert.deepEqual(Object.keys(dependencies), []);
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const kinds = new Set(files.map(({ name }) => name.replace(/^.*?(\.d)?(\.\w+)?$/, '$1$2')));
  assert.deepEqual([...kinds].sort(), ['', '.d.ts', '.js', '.json', '.map', '.md', '.wasm']);
  assert(!files.some(({ name }) => /post\.js|library\.js|\.cpp/.test(name)));
});
