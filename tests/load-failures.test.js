// load() where files, memory or the engine fail: the next lower build with the reason, or an error that tells what to do.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { load } from 'attention-wasm';
import { relaxedSimd } from 'wasm-feature-detect';
import { allBuilds } from './support/builds.js';
import { assertWorks, refused } from './support/loading.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = (name) => readFileSync(join(root, 'dist', name));
const best = (await relaxedSimd()) ? 'relaxed' : 'baseline';
const isThreaded = availableParallelism() > 1;
const folder = mkdtempSync(join(tmpdir(), 'attention-wasm-load-'));
after(() => rmSync(folder, { recursive: true }));

/** A folder like dist/, with binaries changed: `change` gets the bytes of each build. @returns its address */
function folderWith(name, change) {
  const path = join(folder, name);
  mkdirSync(path);
  for (const build of allBuilds) {
    const bytes = change(build, Uint8Array.from(dist(`attention.${build}.wasm`)));
    if (bytes) writeFileSync(join(path, `attention.${build}.wasm`), bytes);
  }
  return `${pathToFileURL(path)}/`;
}

/** Multiplications of vectors become additions: a module that loads, runs, and is wrong. */
function broken(bytes) {
  let count = 0;
  for (let at = 0; at + 2 < bytes.length; ++at) {
    if (bytes[at] === 0xfd && bytes[at + 1] === 0xe6 && bytes[at + 2] === 0x01) {
      bytes[at + 1] = 0xe4;
      ++count;
    }
  }
  assert(count > 10, `${count} multiplications`);
  return bytes;
}

/** Runs a module in a Node of its own, with load() and `row` at hand. @returns what it printed as JSON */
function run(script, { flags = [], entry = 'dist/index.js', base = root } = {}) {
  const file = join(folder, 'script.mjs');
  const start = `const { load } = await import(${JSON.stringify(pathToFileURL(join(base, entry)).href)});
    const row = { data: Float32Array.of(1, 2), shape: [1, 2] };
    const use = (a) => [...a.scaledDotProductAttention(row, row, row).output.data];
    const failure = (options) => load(options).then(() => assert.fail('it loaded'), ({ code, message }) => ({ code, message }));
    const print = (value) => console.log(JSON.stringify(value));\n`;
  writeFileSync(file, script.includes('START') ? script.replace('START', start) : start + script);
  const inherited = process.execArgv.filter((flag) => flag.startsWith('--experimental-wasm'));
  const child = spawnSync(process.execPath, [...inherited, ...flags, file], { encoding: 'utf8', timeout: 60_000 });
  assert.equal(child.status, 0, child.stderr);
  return JSON.parse(child.stdout);
}

describe('binaries that are wrong', () => {
  test('E-088: a build that computes wrongly is found out at load, and the next lower one is used', async () => {
    const vectors = folderWith('broken', (build, bytes) => (build === 'scalar' ? bytes : broken(bytes)));
    const attention = await load({ wasmUrl: vectors });
    assertWorks(attention);
    assert.deepEqual([attention.info.simd, attention.info.threads], ['scalar', 1]);
    const reasons = attention.info.reasons.join('\n');
    assert.match(reasons, new RegExp(`${best}: the build did not load .*a failed self-test: attention gave`));
    if (isThreaded) assert.match(reasons, /threads: the build with threads did not load .*a failed self-test/);
    for (const threads of [1, 2]) {
      await refused(
        { wasmUrl: vectors, simd: 'baseline', threads },
        'LOAD_FAILED',
        /^load: the baseline(-mt)? build must load, got a failed self-test: attention gave .* for /,
      );
    }
  });

  test('E-088: one that is wrong with threads only goes on without', async () => {
    const threaded = folderWith('threads', (build, bytes) => (build.endsWith('-mt') ? broken(bytes) : bytes));
    const { info } = await load({ wasmUrl: threaded });
    assert.deepEqual([info.simd, info.threads], [best, 1]);
    if (isThreaded) assert.match(info.reasons.join(), /threads: the build with threads did not load .*self-test/);
  });

  test('truncated anywhere, or with a byte changed in its head: the next lower build, or LOAD_FAILED', async () => {
    for (const length of [1, 2, 8, 100, 30_000]) {
      const cut = folderWith(`cut-${length}`, (build, bytes) => (build === 'scalar' ? bytes : bytes.slice(0, length)));
      const { info } = await load({ wasmUrl: cut });
      assert.equal(info.simd, 'scalar');
      assert(info.reasons.some((reason) => reason.startsWith(`${best}: the build did not load`)));
      await refused(
        { wasmUrl: cut, simd: 'baseline', threads: 1 },
        'LOAD_FAILED',
        /^load: the baseline build must load/,
      );
    }
    const all = folderWith('all', (_, bytes) => bytes.fill(0xff, 4, 8));
    await refused({ wasmUrl: all }, 'LOAD_FAILED', new RegExp(`^load: the ${best} build must load, got .*version`));
  });

  test('the binary of another build is refused, whether it would run or not', async () => {
    const other = best === 'relaxed' ? 'baseline' : 'baseline-mt';
    await refused(
      { simd: best, threads: 1, wasmBinary: dist(`attention.${other}.wasm`) },
      'LOAD_FAILED',
      best === 'relaxed' ? /got a failed self-test: the binary is of another build/ : /build must load, got /,
    );
  });
});

describe('answers of a server', () => {
  /** @type {import('node:http').Server} */
  let server;
  let url;
  const requests = [];
  before(async () => {
    server = createServer((request, response) => {
      requests.push(request.url);
      const [, kind, name] = request.url.split('/');
      if (kind === 'missing') return response.writeHead(404).end('nothing here');
      if (kind === 'page') return response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><p>app');
      if (kind === 'gone') return response.destroy();
      const bytes = dist(name);
      if (kind === 'short') {
        response.writeHead(200, { 'Content-Length': bytes.length }).write(bytes.subarray(0, 5000));
        return setTimeout(() => response.destroy(), 20);
      }
      const type = kind === 'text' ? 'text/plain' : 'application/wasm';
      return response.writeHead(200, { 'Content-Type': type }).end(bytes);
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    url = `http://127.0.0.1:${server.address().port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  test('E-083: the right bytes are enough, whatever type they come with; one file is asked for', async () => {
    for (const kind of ['wasm', 'text']) {
      requests.length = 0;
      assertWorks(await load({ wasmUrl: `${url}/${kind}/`, threads: 1 }));
      assert.deepEqual(requests, [`/${kind}/attention.${best}.wasm`]);
    }
  });

  const kFailures = {
    missing: /HTTP status 404 for http:.*attention\./,
    page: /got no wasm but text\/html at http:.*: it begins with "<!doctype html>"/,
    gone: /fetch failed/,
    short: /terminated/,
  };
  for (const [kind, message] of Object.entries(kFailures)) {
    test(`${kind}: LOAD_FAILED, which tells address and answer`, async () => {
      await refused({ wasmUrl: `${url}/${kind}/` }, 'LOAD_FAILED', message);
      await refused({ wasmUrl: `${url}/${kind}/attention.scalar.wasm`, simd: 'scalar' }, 'LOAD_FAILED', message);
    });
  }
});

describe('files that a bundler left behind', () => {
  /** The package without its binaries. */
  const stripped = join(folder, 'stripped');
  before(() => {
    cpSync(join(root, 'dist'), join(stripped, 'dist'), { recursive: true });
    cpSync(join(root, 'package.json'), join(stripped, 'package.json'));
    symlinkSync(join(root, 'node_modules'), join(stripped, 'node_modules'));
    for (const build of allBuilds) rmSync(join(stripped, `dist/attention.${build}.wasm`));
  });

  test('E-083: the copy in the code is used, and the reason told', () => {
    const [info, output] = run('const a = await load(); print([a.info, use(a)])', { base: stripped });
    assert.deepEqual([info.simd, info.threads, output], ['baseline', 1, [1, 2]]);
    assert.match(
      info.reasons.join('\n'),
      /did not load .*ENOENT.*\nfiles: missing, so the copy of the baseline build/s,
    );
  });

  test('a build that was asked for by name is not replaced', () => {
    const errors = run(
      'print(await Promise.all([{ simd: "scalar" }, { threads: 2 }, { wasmUrl: "nowhere/" }].map(failure)))',
      { base: stripped },
    );
    for (const { code, message } of errors) {
      assert.equal(code, 'LOAD_FAILED', message);
      assert.match(message, /ENOENT/);
    }
  });
});

test('E-083: attention-wasm/inline is one file that reads no other, in each build', () => {
  const alone = join(folder, 'alone');
  mkdirSync(alone);
  cpSync(join(root, 'dist/inline.js'), join(alone, 'inline.mjs'));
  const levels = best === 'relaxed' ? ['scalar', 'baseline', 'relaxed'] : ['scalar', 'baseline'];
  const seen = run(
    `globalThis.fetch = () => { throw new Error('fetched'); };
    const seen = [];
    for (const simd of ${JSON.stringify(levels)}) {
      const a = await load({ simd });
      seen.push([a.info.simd, a.info.threads, use(a)]);
    }
    print([seen, (await load()).info, await failure({ threads: 2 })]);`,
    { base: alone, entry: 'inline.mjs' },
  );
  assert.deepEqual(
    seen[0],
    levels.map((simd) => [simd, 1, [1, 2]]),
  );
  assert.equal(seen[1].simd, best);
  assert.match(seen[1].reasons.join(), new RegExp(`threads: the ${best} build has none`));
  assert.equal(seen[2].code, 'UNSUPPORTED');
});

describe('engines and memory', () => {
  test('an engine without WebAssembly: UNSUPPORTED, which says so', () => {
    for (const [script, flags] of [
      ['delete globalThis.WebAssembly; START print(await failure())', []],
      ['print(await failure())', ['--jitless']],
    ]) {
      const { code, message } = run(script, { flags: [...flags, '--no-warnings'] });
      assert.deepEqual(
        [code, message],
        ['UNSUPPORTED', 'load: the engine must have WebAssembly, got one without it or with it off'],
      );
    }
  });

  test('no memory for the module: OUT_OF_MEMORY', () => {
    const { code, message } = run(`
      WebAssembly.instantiate = async () => { throw new RangeError('could not allocate memory'); };
      print(await failure({ threads: 1 }));`);
    assert.equal(code, 'OUT_OF_MEMORY');
    assert.match(message, /^load: the \w+ build must load, got could not allocate memory$/);
  });

  test('E-078: no memory to be shared: one thread, and the reason', () => {
    const [info, code, output] = run(`
      const { Memory } = WebAssembly;
      WebAssembly.Memory = class { constructor(options) {
        if (options.shared) throw new RangeError('could not allocate memory');
        return new Memory(options);
      } };
      const a = await load({ simd: 'baseline' });
      print([a.info, (await failure({ simd: 'baseline', threads: 2 })).code, use(a)]);`);
    assert.deepEqual([info.threads, output], [1, [1, 2]]);
    assert.equal(code, 'OUT_OF_MEMORY');
    if (isThreaded) assert.match(info.reasons.join(), /threads: the build with threads .*could not allocate memory/);
  });

  test('E-078: a module begins with 2 MiB', async () => {
    for (const simd of ['scalar', 'baseline']) {
      const attention = await load({ simd, threads: 1 });
      assert.equal(attention.memory.total, 2 ** 21);
    }
  });

  test('E-078: memory that does not grow is OUT_OF_MEMORY, and the instance works on', () => {
    const seen = run(`
      const seen = [];
      for (const simd of ['scalar', 'baseline']) for (const threads of simd === 'scalar' ? [1] : [1, 2]) {
        const a = await load({ simd, threads });
        const { allocated } = a.memory;
        const { grow } = WebAssembly.Memory.prototype;
        WebAssembly.Memory.prototype.grow = () => { throw new RangeError('failed to grow memory'); };
        const calls = [() => a.tensor(null, [1 << 22]), () => a.keyValueCache({ numKvHeads: 8, headDim: 64, capacity: 1 << 14 }),
          () => { const x = { data: new Float32Array(1 << 22), shape: [1 << 16, 64] }; a.rope(x, { style: 'half' }); }];
        for (const call of calls) try { call(); seen.push('nothing thrown'); } catch ({ code }) { seen.push(code); }
        seen.push(use(a).join(), a.memory.allocated - allocated);
        WebAssembly.Memory.prototype.grow = grow;
        seen.push(a.tensor(null, [1 << 22]).count);
      }
      print(seen);`);
    const one = ['OUT_OF_MEMORY', 'OUT_OF_MEMORY', 'OUT_OF_MEMORY', '1,2', 0, 2 ** 22];
    assert.deepEqual(seen, [...one, ...one, ...one]);
  });
});
