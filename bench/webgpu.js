// npm run bench:webgpu: our shaders beside onnxruntime-web's webgpu provider, in Chromium, on the GPU of this machine.
//
//   --only P1,D1    some of the workloads
//   --quick         few samples, for a look
//   --small         small sizes, and the driver for the processor that Chromium brings: whether all is right, not how fast
//
// CHROMIUM=… names another browser than /usr/bin/chromium. Everything is compared with float64 before it is timed.
// Prints Markdown, and writes results/webgpu.json.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { kBrowserFlags, kWebgpuFlags } from '../tests/browser/flags.js';
import { main, projectRoot, SetupError, say } from '../tools/machine.js';
import { serve } from '../tools/serve.js';
import { exactRows, largestError } from './check.js';
import { choose, readOptions } from './command-line.js';
import { minimumAndMedian } from './contest.js';
import { ensurePeers, machine } from './setup.js';
import { flops, workloads } from './workloads.js';

const kIds = ['P1', 'P2', 'P3', 'P4', 'D1', 'M1'];
/** What fits a GPU on the processor. */
const kSmall = {
  P1: { H: 2, Hkv: 2, Tq: 64, Tk: 64, D: 32 },
  P2: { H: 1, Hkv: 1, Tq: 100, Tk: 100, D: 64 },
  P3: { H: 2, Hkv: 2, Tq: 72, Tk: 72, D: 32 },
  P4: { H: 4, Hkv: 1, Tq: 64, Tk: 64, D: 128 },
  D1: { H: 4, Hkv: 1, Tk: 512, D: 128 },
  M1: { H: 2, Hkv: 2, Tq: 64, Tk: 64, D: 32, E: 64 },
};
/** Outputs are of order 0.01 to 1. */
const kTolerance = 1e-4;
const kGpuFlags = ['--enable-unsafe-webgpu', '--enable-features=Vulkan', '--ignore-gpu-blocklist'];
const kPage =
  '<!doctype html><link rel="icon" href="data:,"><script type="module" src="bench/webgpu/page.js"></script>';

/** @param {boolean} isSmall @param {(page: import('playwright-core').Page) => Promise<void>} body */
async function inBrowser(isSmall, body) {
  const server = await serve(projectRoot, { pages: { 'bench.html': kPage } });
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [...kBrowserFlags, ...(isSmall ? kWebgpuFlags : kGpuFlags)],
  });
  try {
    const page = await browser.newPage();
    await page.goto(`${server.url}bench.html`);
    await page.waitForFunction(() => window.bench);
    await body(page);
  } finally {
    await browser.close();
    await server.close();
  }
}

/** Whoever computes the workload rightly. @returns {Promise<{ id: string, way: string, error: number }[]>} */
async function rightOnes(page, workload) {
  const ways = await page.evaluate((w) => window.bench.ortWays(w), workload);
  const exact = exactRows(workload);
  const right = [];
  for (const [id, way] of [['ours', ''], ...ways.map((name) => ['ort', name])]) {
    const label = `${workload.id} ${id} ${way}`;
    try {
      const output = await page.evaluate(([a, b, w]) => window.bench.make(a, b, w), [id, way, workload]);
      const error = largestError(workload, output, exact);
      if (error <= kTolerance) right.push({ id, way, error });
      else say(`${label}: off by ${error.toExponential(1)}, left out`);
    } catch (error) {
      if (id === 'ours') throw error;
      say(`${label}: ${error.message.split('\n')[0]}`);
    }
  }
  if (!right.some(({ id }) => id === 'ours')) throw new SetupError(`${workload.id}: our result is wrong`);
  return right;
}

async function contest(page, workload, { rounds, runs }) {
  const right = await rightOnes(page, workload);
  const results = right.map((one) => ({ ...one, times: [], gpuTimes: [] }));
  for (let round = 0; round < rounds; ++round) {
    for (const result of results) {
      const { ms, gpu } = await page.evaluate(([a, b, n]) => window.bench.time(a, b, n), [result.id, result.way, runs]);
      result.times.push(ms);
      if (gpu !== null) result.gpuTimes.push(gpu);
    }
  }
  for (const { id, way } of right) await page.evaluate(([a, b]) => window.bench.drop(a, b), [id, way]);
  return results.map(({ times, gpuTimes, ...rest }) => ({
    ...rest,
    ...minimumAndMedian(times),
    ...(gpuTimes.length > 0 && { gpu: minimumAndMedian(gpuTimes) }),
  }));
}

function report(run) {
  const number = (ms) => (ms === undefined ? '–' : ms.toPrecision(3));
  const lines = [
    `${run.adapter}; ${run.machine.processor}, ${run.machine.system}. ms a run, least (median); GFLOP/s of the least.`,
    '',
    '| | who | ms | by the GPU clock | GFLOP/s | error |',
    '| --- | --- | ---: | ---: | ---: | ---: |',
  ];
  for (const [id, { workload, results }] of Object.entries(run.workloads)) {
    for (const { id: who, way, minimum, median, gpu, error } of results) {
      const name = who === 'ours' ? 'this package' : `onnxruntime-web, ${way}`;
      const rate = (flops(workload) / minimum / 1e6).toPrecision(3);
      lines.push(
        `| ${id} | ${name} | ${number(minimum)} (${number(median)}) | ${number(gpu?.minimum)} | ${rate} | ${error.toExponential(1)} |`,
      );
    }
  }
  return lines.join('\n');
}

await main(async () => {
  const { only, quick = false, small = false } = readOptions(['only'], ['quick', 'small']);
  const ids = choose('only', only, kIds);
  ensurePeers();
  const effort = small ? { rounds: 1, runs: 1 } : quick ? { rounds: 3, runs: 10 } : { rounds: 9, runs: 30 };
  await inBrowser(small, async (page) => {
    const adapter = await page.evaluate(() => window.bench.adapter());
    if (!adapter) throw new SetupError('the browser has no WebGPU adapter here');
    if (adapter.isFallbackAdapter && !small) {
      throw new SetupError(`the only adapter computes on the processor (${adapter.name}): use --small`);
    }
    const run = { date: new Date().toISOString(), machine: machine(), adapter: adapter.name, workloads: {} };
    for (const id of ids) {
      const workload = { ...workloads[id], ...(small && kSmall[id]), onGpu: true };
      say(`${id}: ${small ? 'small' : workload.title}`);
      run.workloads[id] = { workload, results: await contest(page, workload, effort) };
    }
    const folder = join(import.meta.dirname, 'results');
    mkdirSync(folder, { recursive: true });
    if (!small) writeFileSync(join(folder, 'webgpu.json'), `${JSON.stringify(run, null, 1)}\n`);
    console.log(`\n${report(run)}`);
  });
});
