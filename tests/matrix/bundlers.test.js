// The packed package through bundlers without configuration, and what they make of it in Chromium.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import * as esbuild from 'esbuild';
import { rollup } from 'rollup';
import * as vite from 'vite';
import webpack from 'webpack';
import { visit } from './browsers.js';
import {
  assertResult,
  exercise,
  isolation,
  matrixFolder,
  nodeOf,
  pageOf,
  project,
  runNode,
  serveOnce,
  toServer,
} from './support.js';

/** The address says how many threads are asked for. */
const options = 'location.hash ? { threads: Number(location.hash.slice(1)) } : {}';
const kMain = exercise("import { load } from 'attention-wasm';", { options, report: toServer });
const kInline = exercise("import { load } from 'attention-wasm/inline';", { report: toServer });
const kWorker = exercise("import { load } from 'attention-wasm/worker';", { options, report: toServer });
/** For bundlers that don't see the worker: it is one more entry, which the page names. */
const kOwnWorker = exercise("import { load } from 'attention-wasm/worker';", {
  options: "{ createWorker: () => new Worker(new URL('./host.js', location.href), { type: 'module' }) }",
  report: toServer,
});
const kHost = "import { serveWorker } from 'attention-wasm/worker-host';\nserveWorker();\n";
const kPage = { 'index.html': pageOf('/main.js') };
/** No more than the page's own files, and wasm: what a careful site allows. */
const kPolicy =
  "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; object-src 'none'; img-src data:";

/** Serves `folder` and gives the report of its page. */
const report = async (folder, headers = {}, path = '/') =>
  visit('Chromium', await serveOnce(folder, { policy: kPolicy, ...headers }), path);

/** With and without isolation: threads where memory can be shared, one and a reason where not. */
async function assertBoth(folder) {
  const alone = await report(folder);
  assertResult(alone, { threads: 1, simd: 'relaxed' });
  assert(
    alone.info.reasons.some((reason) => /^threads: no shared memory/.test(reason)),
    alone.info.reasons.join(),
  );
  const isolated = await report(folder, { isolated: true }, '/#2');
  assertResult(isolated, { simd: 'relaxed', threads: 2 });
  assert.equal(isolated.isolated, true);
}

/** Vite's own development server, with the report taken out of its way. */
async function developed(root, isolated) {
  let receive;
  const result = new Promise((done) => {
    receive = done;
  });
  const collector = (request, response, next) => {
    if (request.method !== 'POST') return next();
    let body = '';
    return request
      .on('data', (text) => (body += text))
      .on('end', () => {
        response.end();
        receive(JSON.parse(body));
      });
  };
  const dev = await vite.createServer({
    root,
    logLevel: 'error',
    server: { host: '127.0.0.1', headers: isolated ? isolation : {} },
    plugins: [{ name: 'collector', configureServer: ({ middlewares }) => void middlewares.use(collector) }],
  });
  await dev.listen();
  const { port } = dev.httpServer.address();
  return { url: `http://127.0.0.1:${port}`, result, close: () => dev.close() };
}

describe('E-083: Vite', () => {
  const built = async (main) => {
    const root = project({ 'index.html': pageOf('/main.js'), 'main.js': main });
    await vite.build({ root, logLevel: 'error' });
    return join(root, 'dist');
  };
  test('build: main', async () => assertBoth(await built(kMain)));
  test('build: worker', async () => assertBoth(await built(kWorker)));
  test('build: inline', async () => assertResult(await report(await built(kInline)), { simd: 'relaxed', threads: 1 }));

  for (const [name, main, threads] of [
    ['main', kMain],
    ['worker', kWorker],
    ['inline', kInline, 1],
  ]) {
    test(`dev server: ${name}`, async (t) => {
      const root = project({ 'index.html': pageOf('/main.js'), 'main.js': main });
      for (const isolated of [false, true]) {
        const path = isolated && !threads ? '/#2' : '/';
        const result = await visit('Chromium', await developed(root, isolated), path);
        assertResult(result);
        t.diagnostic(JSON.stringify(result.info));
        assert.equal(result.info.threads, path === '/' ? 1 : 2);
        assert.notEqual(result.info.simd, 'scalar', result.info.reasons.join('\n'));
      }
    });
  }

  test('server rendering', async () => {
    const root = project({ 'main.js': exercise("import { load } from 'attention-wasm';") });
    await vite.build({ root, logLevel: 'error', build: { ssr: 'main.js' } });
    assertResult(runNode('node-22', root, ['dist/main.js']), { simd: 'relaxed' });
  });
});

describe('E-083: webpack 5', () => {
  const built = async (main, mode) => {
    const root = project({ 'main.js': main });
    const output = { path: join(root, 'out'), filename: 'main.js' };
    await new Promise((done, fail) => {
      webpack({ context: root, entry: './main.js', mode, output, devtool: false }, (error, stats) => {
        const { errors, warnings } = stats?.toJson({ all: false, errors: true, warnings: true }) ?? {};
        const sizes = /size limit|lazy load|code splitting/i; // advice about large files
        const found = [...(errors ?? []), ...(warnings ?? []).filter(({ message }) => !sizes.test(message))];
        if (error || found.length) fail(error ?? new Error(found.map(({ message }) => message).join('\n')));
        else done();
      });
    });
    writeFileSync(join(root, 'out/index.html'), pageOf('/main.js'));
    return join(root, 'out');
  };
  test('production: main', async () => assertBoth(await built(kMain, 'production')));
  test('production: worker', async () => assertBoth(await built(kWorker, 'production')));
  test('production: inline', async () =>
    assertResult(await report(await built(kInline, 'production')), { simd: 'relaxed', threads: 1 }));
  test('development without eval: main', async () => assertBoth(await built(kMain, 'development')));
});

/** Bundlers that leave binaries behind: the copy in the code, or the folder that wasmUrl names. */
function leavesFilesBehind(bundle) {
  const kCopied = exercise("import { load } from 'attention-wasm';", {
    options: "{ wasmUrl: new URL('/wasm/', location.href), threads: 1 }",
    report: toServer,
  });
  test('main: the copy in the code', async () => {
    const result = await report(await bundle({ main: kMain }));
    assertResult(result, { simd: 'baseline', threads: 1 });
    assert.match(
      result.info.reasons.join('\n'),
      /files: missing, so the copy of the baseline build in the code is used/,
    );
  });
  test('main with wasmUrl', async () => {
    assertResult(await report(await bundle({ main: kCopied }, true)), { simd: 'relaxed', threads: 1 });
  });
  test('inline', async () => {
    assertResult(await report(await bundle({ main: kInline })), { simd: 'relaxed', threads: 1 });
  });
  test('a worker of one’s own', async () => {
    assertResult(await report(await bundle({ main: kOwnWorker, host: kHost })), { threads: 1 });
  });
}

/** Entries into `out`, with a page; `withWasm` copies the binaries beside them. */
function prepared(entries, withWasm) {
  const root = project(Object.fromEntries(Object.entries(entries).map(([name, text]) => [`${name}.js`, text])));
  const out = project(kPage);
  if (withWasm) {
    const shipped = join(out, 'node_modules/attention-wasm/dist');
    spawnSync('cp', ['-r', shipped, join(out, 'wasm')]);
  }
  return { root, out };
}

describe('E-083: esbuild', () => {
  const bundle = (more) => async (entries, withWasm) => {
    const { root, out } = prepared(entries, withWasm);
    const { warnings } = await esbuild.build({
      absWorkingDir: root,
      entryPoints: Object.keys(entries).map((name) => `${name}.js`),
      ...{ bundle: true, minify: true, format: 'esm', outdir: out, logLevel: 'silent', ...more },
    });
    assert.deepEqual(
      warnings.map(({ text }) => text),
      [],
    );
    return out;
  };
  describe('one file', () => leavesFilesBehind(bundle({})));
  describe('with code splitting', () => leavesFilesBehind(bundle({ splitting: true })));

  test('a classic script (iife), where import.meta is empty', async () => {
    const { root, out } = prepared({ main: kMain });
    const options = { bundle: true, format: 'iife', outdir: out, logLevel: 'silent' };
    await esbuild.build({ absWorkingDir: root, entryPoints: ['main.js'], ...options });
    writeFileSync(
      join(out, 'index.html'),
      '<!doctype html><link rel="icon" href="data:,"><script src="/main.js"></script>',
    );
    assertResult(await report(out), { simd: 'baseline', threads: 1 });
  });

  test('for Node, as CommonJS', async () => {
    const { root } = prepared({ main: exercise("import { load } from 'attention-wasm';") });
    const options = {
      bundle: true,
      format: 'cjs',
      platform: 'node',
      outfile: join(root, 'out.cjs'),
      logLevel: 'silent',
    };
    await esbuild.build({ absWorkingDir: root, entryPoints: ['main.js'], ...options });
    assertResult(runNode('node-20', root, ['out.cjs']), { threads: 1 });
  });
});

describe('E-083: Rollup', () => {
  // Without a plugin Rollup does not look into node_modules: the entries name the files.
  const byFile = (text) =>
    text.replaceAll(/'attention-wasm(\/[\w-]+)?'/g, (_, entry = '/index') => {
      return `'./node_modules/attention-wasm/dist${entry}.js'`;
    });
  leavesFilesBehind(async (entries, withWasm) => {
    const { root, out } = prepared(
      Object.fromEntries(Object.entries(entries).map(([name, text]) => [name, byFile(text)])),
      withWasm,
    );
    const names = Object.keys(entries);
    const warnings = [];
    const bundle = await rollup({
      input: Object.fromEntries(names.map((name) => [name, join(root, `${name}.js`)])),
      onwarn: ({ message }) => warnings.push(message),
    });
    await bundle.write({ dir: out, format: 'es' });
    await bundle.close();
    assert.deepEqual(warnings, []);
    return out;
  });
});

test('E-083: vitest', () => {
  const root = project({
    'app.test.js': `import { expect, test } from 'vitest';
      import { load } from 'attention-wasm';
      test('it loads', async () => {
        const x = { data: Float32Array.of(1, 2), shape: [1, 2] };
        const attention = await load({ threads: 1 });
        expect([...attention.scaledDotProductAttention(x, x, x).output.data]).toEqual([1, 2]);
        expect(attention.info.reasons.join()).not.toMatch(/files|load/);
      });`,
  });
  // Vitest finds what it is made of from where it runs, so the project is seen from there.
  const cli = join(matrixFolder, 'node_modules/vitest/vitest.mjs');
  const { status, stdout, stderr } = spawnSync(
    nodeOf('node-22'),
    [cli, 'run', '--root', root, '--reporter=json', '--outputFile=out.json'],
    {
      cwd: root,
      encoding: 'utf8',
      timeout: 120_000,
      env: { ...process.env, PATH: `${join(nodeOf('node-22'), '..')}:${process.env.PATH}` },
    },
  );
  assert.equal(status, 0, stdout + stderr);
  assert.equal(JSON.parse(readFileSync(join(root, 'out.json'), 'utf8')).numPassedTests, 1);
});

test('every bundler of package.json is tested here', () => {
  const installed = readdirSync(join(matrixFolder, 'node_modules'));
  for (const name of ['vite', 'webpack', 'rollup', 'esbuild', 'vitest']) assert(installed.includes(name), name);
});
