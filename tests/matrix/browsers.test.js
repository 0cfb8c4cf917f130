// The packed package in browsers without a bundler: import maps, workers, policies, isolation. One that is not
// installed is left out by name, and says how to install it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { browsers, visit } from './browsers.js';
import { assertResult, exercise, project, serveOnce, toServer } from './support.js';

const kMap = JSON.stringify({
  imports: {
    'attention-wasm': '/node_modules/attention-wasm/dist/index.js',
    'attention-wasm/worker': '/node_modules/attention-wasm/dist/worker.js',
    'attention-wasm/inline': '/node_modules/attention-wasm/dist/inline.js',
  },
});
const pageWith = (script) => `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
  <script type="importmap">${kMap}</script>${script}`;
/** The address says how many threads are asked for. */
const options = 'location.hash ? { threads: Number(location.hash.slice(1)) } : {}';
const kMain = exercise("import { load } from 'attention-wasm';", { options, report: toServer });
const kWorker = exercise("import { load } from 'attention-wasm/worker';", { report: toServer });
/** Import maps don't reach into workers, so one names its files; and hands its result to the page. */
const inWorker = (entry) =>
  exercise(`import { load } from '${entry}';`, { report: toServer }).replaceAll(
    "'attention-wasm/inline'",
    "'/node_modules/attention-wasm/dist/inline.js'",
  );

/**
 * While a long call runs in the worker, the page's own timer ticks; and a signal stops the call. The best of some rounds
 * counts: page and worker may have to share one processor with others.
 */
const kSmooth = `import { load } from 'attention-wasm/worker';
  const x = { data: new Float32Array(8 * 2048 * 64).fill(1), shape: [8, 2048, 64] };
  const round = async (attention) => {
    let last = performance.now(), gap = 0, ticks = 0;
    const timer = setInterval(() => { const now = performance.now(); gap = Math.max(gap, now - last); last = now; ++ticks; }, 5);
    const controller = new AbortController();
    const call = attention.scaledDotProductAttention(x, x, x, { signal: controller.signal }).catch(({ code }) => code);
    await new Promise((done) => setTimeout(done, 100));
    const aborted = performance.now();
    controller.abort();
    const code = await call;
    const stopped = performance.now() - aborted;
    clearInterval(timer);
    return { code, stopped, gap, ticks };
  };
  const run = async () => {
    const attention = await load({ threads: 1 });
    const { output } = await attention.scaledDotProductAttention(x, x, x);
    const rounds = [];
    for (let n = 0; n < 5; ++n) rounds.push(await round(attention));
    const again = await attention.softmax({ data: Float32Array.of(0, 0), shape: [1, 2] });
    const { info, memory } = attention;
    attention.dispose();
    return { info, memory, output: [...output.data.slice(0, 3)], rounds, again: [...again.data] };
  };
  run().catch(({ code, message, stack }) => ({ error: message, code, stack })).then((result) => { ${toServer}; });`;

const kStrict =
  "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; object-src 'none'; img-src data:";
const folder = project({
  'index.html': pageWith('<script type="module" src="/main.js"></script>'),
  'worker.html': pageWith('<script type="module" src="/worker.js"></script>'),
  'smooth.html': pageWith('<script type="module" src="/smooth.js"></script>'),
  'main.js': kMain,
  'worker.js': kWorker,
  'smooth.js': kSmooth,
  // Under a policy an inline map would need a hash, so these pages name files.
  'strict.html': '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/strict.js"></script>',
  'strict.js': kMain.replace("'attention-wasm'", "'/node_modules/attention-wasm/dist/inline.js'"),
  'module-worker.html': pageWith('<script type="module" src="/start.js"></script>'),
  'start.js': "new Worker('/in-worker.js', { type: 'module' });",
  'in-worker.js': inWorker('attention-wasm/inline'),
  'classic.html': pageWith('<script src="/start-classic.js"></script>'),
  'start-classic.js': "new Worker('/classic-worker.js');",
  'classic-worker.js': exercise(
    "const load = async (options) => (await import('/node_modules/attention-wasm/dist/inline.js')).load(options);",
    { report: toServer },
  ),
});

for (const [name, { missing }] of Object.entries(browsers)) {
  const skip = missing ? `${name} is not installed: ${missing}` : false;
  describe(name, { skip }, () => {
    const report = async (path, options) => visit(name, await serveOnce(folder, options), path);
    const hasThreads = name !== 'WebKitGTK'; // it can't hand shared memory to workers
    const best = name === 'WebKitGTK' ? 'baseline' : 'relaxed';

    test('E-087: a script tag and an import map, without isolation: one thread, and why', async () => {
      const result = await report('/index.html');
      assertResult(result, { threads: 1, simd: best });
      assert.match(result.info.reasons.join(), /threads: no shared memory/);
    });
    test('E-087: with isolation: threads, where the engine has them', async () => {
      const result = await report(hasThreads ? '/index.html#2' : '/index.html', { isolated: true });
      assertResult(result, { simd: best, threads: hasThreads ? 2 : 1 });
      assert.equal(result.isolated, true);
    });
    test('E-093: attention-wasm/worker', async () => {
      for (const isolated of [false, true]) assertResult(await report('/worker.html', { isolated }), { simd: best });
    });
    test('E-093: the page stays responsive, and a signal stops the call', async () => {
      for (const isolated of [false, true]) {
        const result = await report('/smooth.html', { isolated });
        assert.equal(result.error, undefined, result.stack);
        assert.deepEqual(result.output, [1, 1, 1]);
        for (const { code, ticks } of result.rounds) {
          assert.equal(code, 'ABORTED');
          assert(ticks > 3, `${ticks} ticks`);
        }
        const least = (name) => Math.min(...result.rounds.map((round) => round[name]));
        assert(least('stopped') < 100, `it stopped after ${least('stopped')} ms`);
        assert(least('gap') < 50, `the page stood still for ${least('gap')} ms`);
        assert.deepEqual(result.again, [0.5, 0.5]);
      }
    });
    test("E-082: under script-src 'self' 'wasm-unsafe-eval'", async () => {
      assertResult(await report('/strict.html', { policy: kStrict }), { simd: best });
    });
    test('E-083: in a module worker, and in a classic one by import()', async () => {
      for (const path of ['/module-worker.html', '/classic.html']) assertResult(await report(path), { simd: best });
    });
    test('a policy without wasm: LOAD_FAILED, which tells of the policy', async () => {
      const policy = kStrict.replace(" 'wasm-unsafe-eval'", '');
      const { code, error } = await report('/strict.html', { policy });
      assert.equal(code, 'LOAD_FAILED', error);
      assert.match(error, /^load: the \w+ build must load, got .*(Content Security|CSP|policy|disallowed|blocked)/i);
    });
  });
}
