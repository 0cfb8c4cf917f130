// npm run bench:webgpu: our shaders beside onnxruntime-web's webgpu provider and beside the limits of the GPU, in headless
// Chromium or in Node with Dawn.
//
//   --only P1,D1    some of the workloads
//   --quick         few samples, for a look
//   --dawn          in Node, by the npm package `webgpu` (51 MB), in place of the browser
//   --small         small sizes, and the driver for the processor that Chromium brings: whether all is right, not how fast
//
// CHROMIUM=… names another browser than /usr/bin/chromium. Everything is compared with float64 before it is timed.
// Prints Markdown, and writes results/webgpu.json.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { kBrowserFlags, kWebgpuFlags } from '../tests/browser/flags.js';
import { main, projectRoot, run, SetupError, say } from '../tools/machine.js';
import { serve } from '../tools/serve.js';
import { exactRows, largestError } from './check.js';
import { choose, readOptions } from './command-line.js';
import { minimumAndMedian } from './contest.js';
import { Process } from './process.js';
import { ensurePeers, machine } from './setup.js';
import { flops, tensorBytes, workloads } from './workloads.js';

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
/** The driver for the processor, as Debian's Chromium brings it. */
const kSwiftShader = {
  LD_LIBRARY_PATH: '/usr/lib/chromium',
  VK_ICD_FILENAMES: '/usr/lib/chromium/vk_swiftshader_icd.json',
};
const kPage =
  '<!doctype html><link rel="icon" href="data:,"><script type="module" src="bench/webgpu/page.js"></script>';

/** Asks the page, or the process, for one of the commands of webgpu/page.js. @typedef {(command: string, argument?: object) => Promise<any>} Ask */

/** @param {boolean} isSmall @param {(ask: Ask) => Promise<void>} body */
async function inBrowser(isSmall, body) {
  const server = await serve(projectRoot, { pages: { 'bench.html': kPage } });
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: [...kBrowserFlags, ...(isSmall ? kWebgpuFlags : kGpuFlags)],
  });
  try {
    const page = await browser.newPage();
    await page.goto(`${server.url}bench.html`);
    await page.waitForFunction(() => globalThis.bench);
    await body((command, argument) => page.evaluate(([name, given]) => bench[name](given), [command, argument ?? {}]));
  } finally {
    await browser.close();
    await server.close();
  }
}

/** @param {boolean} isSmall @param {(ask: Ask) => Promise<void>} body */
async function inNode(isSmall, body) {
  const folder = join(import.meta.dirname, 'webgpu');
  if (!existsSync(join(folder, 'node_modules/webgpu'))) {
    run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
  }
  if (isSmall) Object.assign(process.env, kSwiftShader);
  const child = new Process(new URL('./webgpu/dawn.js', import.meta.url));
  try {
    await body((command, argument) => child.ask(command, argument ?? {}));
  } finally {
    await child.close();
  }
}

/** Whoever computes the workload rightly. @param {Ask} ask @returns {Promise<{ id: string, way: string, error: number }[]>} */
async function rightOnes(ask, workload) {
  const ways = await ask('ortWays', { workload });
  const exact = exactRows(workload);
  const right = [];
  for (const [id, way] of [['ours', ''], ...ways.map((name) => ['ort', name])]) {
    const label = `${workload.id} ${id} ${way}`;
    try {
      const output = await ask('make', { id, way, workload });
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

/** @param {Ask} ask */
async function contest(ask, workload, { rounds, runs }) {
  const right = await rightOnes(ask, workload);
  const results = right.map((one) => ({ ...one, times: [], gpuTimes: [] }));
  for (let round = 0; round < rounds; ++round) {
    for (const result of results) {
      const { ms, gpu } = await ask('time', { id: result.id, way: result.way, count: runs });
      result.times.push(ms);
      if (gpu !== null) result.gpuTimes.push(gpu);
    }
  }
  for (const { id, way } of right) await ask('drop', { id, way });
  return results.map(({ times, gpuTimes, ...rest }) => ({
    ...rest,
    ...minimumAndMedian(times),
    ...(gpuTimes.length > 0 && { gpu: minimumAndMedian(gpuTimes) }),
  }));
}

/** The nearer limit: how much of the arithmetic, or of the memory, a time makes use of. */
function shareOf(workload, ms, { gflops, gbytes }) {
  const [arithmetic, memory] = [flops(workload) / ms / 1e6 / gflops, tensorBytes(workload) / ms / 1e6 / gbytes];
  const percent = (share) => `${(100 * share).toFixed(0)} %`;
  return memory > arithmetic ? `${percent(memory)} of memory` : `${percent(arithmetic)} of arithmetic`;
}

function report(run) {
  const number = (ms) => (ms === undefined ? '–' : ms.toPrecision(3));
  const { gflops, gbytes } = run.limits;
  const lines = [
    `${run.adapter}; ${run.machine.processor}, ${run.machine.system}. Limits, measured in this run: ` +
      `${number(gflops)} GFLOP/s of multiply-adds in registers, ${number(gbytes)} GB/s read. ms a run, least (median); ` +
      'rates and shares of the least, by the GPU clock where there is one; beside onnxruntime-web: of its fastest way, by our clock.',
    '',
    '| | who | ms | by the GPU clock | GFLOP/s | share of the nearer limit | beside onnxruntime-web | error |',
    '| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |',
  ];
  for (const [id, { workload, results }] of Object.entries(run.workloads)) {
    const others = results.filter(({ id: who }) => who === 'ort').map(({ minimum }) => minimum);
    for (const { id: who, way, minimum, median, gpu, error } of results) {
      const least = gpu?.minimum ?? minimum;
      const cells = [
        ...[id, who === 'ours' ? 'this package' : `onnxruntime-web, ${way}`],
        ...[`${number(minimum)} (${number(median)})`, number(gpu?.minimum)],
        ...[number(flops(workload) / least / 1e6), shareOf(workload, least, run.limits)],
        others.length > 0 && who === 'ours' ? `${number(Math.min(...others) / minimum)} ×` : '',
        error.toExponential(1),
      ];
      lines.push(`| ${cells.join(' | ')} |`);
    }
  }
  return lines.join('\n');
}

await main(async () => {
  const { only, quick = false, small = false, dawn = false } = readOptions(['only'], ['quick', 'small', 'dawn']);
  const ids = choose('only', only, kIds);
  ensurePeers();
  const effort = small ? { rounds: 1, runs: 1 } : quick ? { rounds: 3, runs: 10 } : { rounds: 9, runs: 30 };
  await (dawn ? inNode : inBrowser)(small, async (ask) => {
    const adapter = await ask('adapter');
    if (!adapter) throw new SetupError('there is no WebGPU adapter here');
    if (adapter.isFallbackAdapter && !small) {
      throw new SetupError(`the only adapter computes on the processor (${adapter.name}): use --small`);
    }
    const run = { date: new Date().toISOString(), machine: machine(), adapter: adapter.name, workloads: {} };
    run.runtime = dawn ? 'Dawn in Node' : 'Chromium';
    run.limits = await ask('limits', { isSmall: small });
    for (const id of ids) {
      const workload = { ...workloads[id], ...(small && kSmall[id]), onGpu: true };
      say(`${id}: ${small ? 'small' : workload.title}`);
      run.workloads[id] = { workload, results: await contest(ask, workload, effort) };
    }
    const folder = join(import.meta.dirname, 'results');
    mkdirSync(folder, { recursive: true });
    if (!small) writeFileSync(join(folder, 'webgpu.json'), `${JSON.stringify(run, null, 1)}\n`);
    console.log(`\n${report(run)}`);
  });
});
