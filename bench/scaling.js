// npm run bench:scaling: how time and memory grow with the length, for our best build on one thread, beside
// onnxruntime-web. Writes results/scaling.json and the plot of the README.
//
//   --quick      up to a length that takes a second or so
//   --node 24    under npm's Node 24
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { main, say } from '../tools/machine.js';
import { exactRows } from './check.js';
import { isRunElsewhere, readOptions } from './command-line.js';
import { minimumAndMedian } from './contest.js';
import { contestants } from './contestants.js';
import { besides } from './measures.js';
import { plot } from './plot.js';
import { Process } from './process.js';
import { machine, setUp } from './setup.js';

const powers = (from, to) => Array.from({ length: Math.log2(to / from) + 1 }, (_, n) => from * 2 ** n);

/** One head each: the shapes that grow. */
const kCurves = {
  prefill: {
    title: 'Causal prefill, one head, D = 64',
    lengths: powers(128, 32_768),
    workload: (T) => ({ id: `T=${T}`, kind: 'attention', causal: true, H: 1, Hkv: 1, Tq: T, Tk: T, D: 64 }),
  },
  decode: {
    title: 'Decode, one query, one head, D = 64',
    lengths: powers(1024, 131_072),
    workload: (Tk) => ({ id: `Tk=${Tk}`, kind: 'attention', causal: true, H: 1, Hkv: 1, Tq: 1, Tk, D: 64 }),
  },
};

const kContestants = ['ours-relaxed', 'ort-web'];
const kWay = { 'ort-web': 'Attention' };
const kWarmUp = { calls: 3, ms: 300, mostMs: 8000 };
const kMs = 400;

/** Stops a curve where a contestant no longer can. */
async function curve({ lengths, workload }, quick) {
  const points = Object.fromEntries(kContestants.map((id) => [id, []]));
  for (const length of quick ? lengths.slice(0, -2) : lengths) {
    const size = workload(length);
    const rows = exactRows(size);
    for (const id of kContestants) {
      if (points[id].at(-1)?.failure) continue;
      const point = { length, ...(await measure(id, size, rows)) };
      points[id].push(point);
      say(
        `${size.id} ${id}: ${point.failure ?? `${point.minimum.toPrecision(3)} ms, ${(point.besides / 2 ** 20).toFixed(1)} MiB besides tensors`}`,
      );
    }
  }
  return points;
}

async function measure(id, workload, rows) {
  const { module, options } = contestants.find((one) => one.id === id);
  const process = new Process(new URL('./worker.js', import.meta.url));
  try {
    const terms = { module, options: { ...options, way: kWay[id] }, workload, rows, warmUp: kWarmUp };
    const { error, isRight } = await process.ask('open', { ...terms, mostMs: Number.POSITIVE_INFINITY });
    if (!isRight) return { failure: `wrong by ${error.toExponential(1)}` };
    const { minimum, median } = minimumAndMedian(await process.ask('measure', { ms: kMs }));
    const heap = await process.ask('heap');
    return { minimum, median, heap: heap.wasm, besides: besides(workload, { heap }) };
  } catch (error) {
    return { failure: error.message };
  } finally {
    await process.close();
  }
}

await main(async () => {
  const { quick = false, node } = readOptions(['node'], ['quick']);
  if (isRunElsewhere(node)) return;
  setUp({ peers: true });
  const results = { machine: machine(), quick, curves: {} };
  for (const [name, description] of Object.entries(kCurves)) {
    results.curves[name] = { title: description.title, points: await curve(description, quick) };
  }
  mkdirSync(join(import.meta.dirname, 'results'), { recursive: true });
  writeFileSync(join(import.meta.dirname, 'results/scaling.json'), `${JSON.stringify(results, null, 1)}\n`);
  writeFileSync(join(import.meta.dirname, 'scaling.svg'), plot(results));
  say('wrote bench/results/scaling.json and bench/scaling.svg');
});
