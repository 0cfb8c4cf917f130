// load(): which build comes up and why, where its binary comes from, and that importing and ending leave no trace.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { load } from 'attention-wasm';
import { relaxedSimd } from 'wasm-feature-detect';
import { allBuilds, builds, loadBuild } from './support/builds.js';
import { assertWorks, refused } from './support/loading.js';

const root = new URL('..', import.meta.url);
const hasRelaxed = await relaxedSimd();

const scripts = mkdtempSync(join(tmpdir(), 'attention-wasm-'));
after(() => rmSync(scripts, { recursive: true }));
const entry = JSON.stringify(new URL('dist/index.js', root).href);

/** Runs a module in a Node of its own, from a file: text on the command line is one of the flags that workers refuse. */
function runScript(script, flags = []) {
  const file = join(scripts, 'script.mjs');
  writeFileSync(file, script.replaceAll('ENTRY', entry));
  const inherited = process.execArgv.filter((flag) => flag.startsWith('--experimental-wasm'));
  const started = performance.now();
  const options = { cwd: root, encoding: 'utf8', timeout: 60_000 };
  const { status, stdout, stderr, signal } = spawnSync(process.execPath, [...inherited, ...flags, file], options);
  assert.equal(status, 0, `${signal ?? ''} ${stderr}`);
  return { stdout, stderr, ms: performance.now() - started };
}

describe('which build', () => {
  test('CMake makes five', () => {
    assert.deepEqual(allBuilds, ['scalar', 'baseline', 'relaxed', 'baseline-mt', 'relaxed-mt']);
  });

  for (const build of builds()) {
    test(`${build} comes up when asked for`, async () => {
      const attention = await loadBuild(build);
      const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
      assert.equal(attention.info.version, version);
      assert.equal(attention.info.backend, 'wasm');
      assert(Object.isFrozen(attention.info));
      assertWorks(attention);
    });
  }

  test("'auto' takes the best, and says why not better", async () => {
    const { info } = await load();
    assert.equal(info.simd, hasRelaxed ? 'relaxed' : 'baseline');
    assert.equal(info.threads, Math.min(availableParallelism(), 16));
    const reasons = [];
    if (!hasRelaxed) reasons.push('relaxed SIMD: not supported by this engine');
    if (info.threads === 1) reasons.push('threads: one processor core');
    assert.deepEqual(info.reasons, reasons);
    assert.deepEqual((await load({ threads: 1, backend: 'auto' })).info.reasons.slice(0, 1), [
      'webgpu: this engine has no WebGPU (navigator.gpu is missing)',
    ]);
    assert.deepEqual((await load({ simd: 'scalar' })).info.reasons, ['threads: the scalar build has none']);
  });

  test('null is the default', async () => {
    const { info } = await load({ simd: null, threads: null, backend: null, wasmUrl: null, wasmBinary: null });
    assert.equal(info.simd, hasRelaxed ? 'relaxed' : 'baseline');
  });

  test('an engine with less is served with less, and refuses what it lacks', () => {
    const script = `
      import { load } from ENTRY;
      const codeOf = (simd) => load({ simd, threads: 1 }).then(() => 'none', (reason) => reason.message);
      const seen = [];
      for (const features of [1, 0]) {
        // Plain SIMD is asked for first, relaxed SIMD only where there is plain.
        let asked = 0;
        WebAssembly.validate = () => asked++ < features;
        const { info } = await load({ threads: 1 });
        asked = 0;
        const relaxed = await codeOf('relaxed');
        asked = 0;
        seen.push([info.simd, info.reasons, relaxed, await codeOf('baseline')]);
      }
      console.log(JSON.stringify(seen));`;
    const lacks = (simd) => `load: simd must be one that this engine has, got '${simd}'`;
    const reasons = ['relaxed SIMD: not supported by this engine', 'SIMD: not supported by this engine'];
    assert.deepEqual(JSON.parse(runScript(script).stdout), [
      ['baseline', reasons.slice(0, 1), lacks('relaxed'), 'none'],
      ['scalar', reasons, lacks('relaxed'), lacks('baseline')],
    ]);
  });

  test('E-087: without shared memory there is one thread, with the same results', () => {
    const script = `
      delete globalThis.SharedArrayBuffer;
      const { load } = await import(ENTRY);
      const attention = await load({ simd: 'baseline' });
      const row = { data: Float32Array.of(1, 2), shape: [1, 2] };
      const error = await load({ threads: 2 }).then(() => ({}), (reason) => reason);
      console.log(JSON.stringify([attention.info, [...attention.scaledDotProductAttention(row, row, row).output.data], error.code]));`;
    const [info, output, code] = JSON.parse(runScript(script).stdout);
    assert.equal(info.threads, 1);
    assert.match(info.reasons.join(), /^threads: no shared memory/);
    assert.deepEqual(output, [1, 2]);
    assert.equal(code, 'UNSUPPORTED');
  });

  test('where workers do not start, one thread does', () => {
    // Node hands --input-type on to workers, which then refuse to start from a file.
    const script = `
      import { load } from ${entry};
      const error = await load({ simd: 'baseline', threads: 2 }).then(() => ({}), (reason) => reason);
      console.log(JSON.stringify([(await load({ simd: 'baseline' })).info, error.code, error.message]));`;
    const options = { encoding: 'utf8', timeout: 60_000 };
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], options);
    assert.equal(status, 0, stderr);
    const [info, code, message] = JSON.parse(stdout);
    assert.equal(info.threads, 1);
    assert.equal(code, 'LOAD_FAILED');
    assert.match(message, /the baseline-mt build must load, got a worker did not start: --input-type/);
    if (availableParallelism() > 1) assert.match(info.reasons.join(), /did not load .*a worker did not start/);
  });

  test('where the build with threads does not load, one thread does', () => {
    const script = `
      import { load } from ENTRY;
      // Not the file of the build with threads: its imports don't fit.
      const options = { simd: 'baseline', wasmUrl: 'dist/attention.baseline.wasm' };
      const attention = await load(options);
      const error = await load({ ...options, threads: 2 }).then(() => ({}), (reason) => reason);
      console.log(JSON.stringify([attention.info, error.code]));`;
    const [info, code] = JSON.parse(runScript(script).stdout);
    assert.equal(info.threads, 1);
    assert.match(
      info.reasons.join(),
      availableParallelism() > 1 ? /threads: the build with threads did not load/ : /one processor/,
    );
    assert.equal(code, 'LOAD_FAILED');
  });
});

describe('where the binary comes from', () => {
  const file = new URL('dist/attention.scalar.wasm', root);
  const sources = {
    'a URL': { wasmUrl: file },
    'the text of a URL': { wasmUrl: file.href },
    'a path': { wasmUrl: fileURLToPath(file) },
    'a folder': { wasmUrl: new URL('dist/', root) },
    'a data URL': { wasmUrl: `data:application/wasm;base64,${readFileSync(file, 'base64')}` },
    'a view of bytes': { wasmBinary: readFileSync(file) },
    'an ArrayBuffer': { wasmBinary: Uint8Array.from(readFileSync(file)).buffer },
  };
  for (const [name, options] of Object.entries(sources)) {
    test(name, async () => assertWorks(await load({ simd: 'scalar', ...options })));
  }

  test('what is not there is LOAD_FAILED, with the cause', async () => {
    const error = await refused(
      { simd: 'scalar', wasmUrl: new URL('dist/none.wasm', root) },
      'LOAD_FAILED',
      /^load: the scalar build must load, got ENOENT/,
    );
    assert.equal(error.cause.code, 'ENOENT');
    await refused(
      { simd: 'scalar', wasmUrl: 'http://127.0.0.1:9/none.wasm' },
      'LOAD_FAILED',
      /got fetch failed|got .*port/,
    );
  });

  test('what is no wasm is LOAD_FAILED, with the cause', async () => {
    const error = await refused({ simd: 'scalar', wasmBinary: new Uint8Array(8) }, 'LOAD_FAILED', /magic/);
    assert(error.cause instanceof WebAssembly.CompileError);
    await refused(
      { simd: 'scalar', wasmUrl: new URL('package.json', root) },
      'LOAD_FAILED',
      /^load: the scalar build must load, got no wasm at file:.*package\.json: it begins with "\{/,
    );
  });

  test('the binary of something else is LOAD_FAILED, with the cause', async () => {
    const empty = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
    await refused(
      { simd: 'scalar', wasmBinary: empty, threads: 1 },
      'LOAD_FAILED',
      /^load: the scalar build must load/,
    );
  });
});

describe('traces', () => {
  test('E-084: importing does nothing', () => {
    const { stdout } = runScript(`
      const traces = () => [Object.keys(globalThis), process.eventNames(), process.getActiveResourcesInfo()];
      await new Promise((done) => setTimeout(done, 20));
      const before = traces();
      globalThis.fetch = () => { throw new Error('fetched'); };
      await import(ENTRY);
      await new Promise((done) => setTimeout(done, 20));
      console.log(JSON.stringify([before, traces()]));`);
    const [before, after] = JSON.parse(stdout);
    assert.deepEqual(after, before);
  });

  test('E-084: no globals of a page are needed, and none is made', () => {
    runScript(`
      const before = Object.keys(globalThis).join();
      const { load } = await import(ENTRY);
      await load({ threads: 1 });
      if (typeof window !== 'undefined' || typeof document !== 'undefined') throw new Error('a page?');
      if (Object.keys(globalThis).join() !== before) throw new Error(Object.keys(globalThis).join());`);
  });

  test('E-082: no code is made from text', () => {
    runScript('import { load } from ENTRY; await load();', ['--disallow-code-generation-from-strings']);
    for (const build of allBuilds) assert(existsSync(new URL(`dist/attention.${build}.wasm`, root)), build);
    for (const name of ['threads.js', 'threads.worker.js']) {
      const glue = readFileSync(new URL(`dist/attention.${name}`, root), 'utf8');
      assert.doesNotMatch(glue, /\beval\(|new Function|Function\(['"]/, name);
    }
  });

  test('E-086: a script with threads ends by itself within a second, and quietly', () => {
    const { stdout, ms } = runScript(`
      import { load } from ENTRY;
      const attention = await load({ simd: 'baseline', threads: 2 });
      const x = { data: new Float32Array(8 * 256 * 64).fill(1), shape: [8, 256, 64] };
      attention.scaledDotProductAttention(x, x, x);
      console.log(performance.now());`);
    assert(ms - Number(stdout) < 1000, `${ms} - ${stdout}`);
  });

  test('dispose ends the threads', () => {
    const { stdout } = runScript(`
      import { load } from ENTRY;
      const count = () => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length;
      const before = count();
      const attention = await load({ simd: 'baseline', threads: 3 });
      attention.dispose();
      await new Promise((done) => setTimeout(done, 300));
      console.log(count() - before);`);
    assert.equal(stdout.trim(), '0');
  });

  test('two instances, and one in a worker', async () => {
    const [one, two] = await Promise.all([load({ simd: 'scalar' }), load({ simd: 'scalar' })]);
    one.dispose();
    assertWorks(two);
    const script = `
      import { parentPort } from 'node:worker_threads';
      import { load } from ${JSON.stringify(new URL('dist/index.js', root).href)};
      const attention = await load({ threads: 1 });
      const row = { data: Float32Array.of(1, 2), shape: [1, 2] };
      parentPort.postMessage(attention.scaledDotProductAttention(row, row, row).output);`;
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(script)}`));
    const output = await new Promise((done, failed) => worker.once('message', done).once('error', failed));
    assert.deepEqual([...output.data], [1, 2]);
    await worker.terminate();
  });
});
