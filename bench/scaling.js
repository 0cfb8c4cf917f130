// npm run bench:scaling: how time and memory grow with the length, for our best build on one thread, beside
// onnxruntime-web. Writes results/scaling.json and the plot of the README.
//
//   --quick      without the three longest lengths
//   --node 24    under npm's Node 24
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { main, say } from '../tools/machine.js';
import { exactRows } from './check.js';
import { isRunElsewhere, readOptions } from './command-line.js';
import { enter, minimumAndMedian } from './contest.js';
import { contestants } from './contestants.js';
import { plot } from './plot.js';
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

const kContestants = ['ours-relaxed', 'ort-web'].map((wanted) => contestants.find(({ id }) => id === wanted));
const kEffort = { warmUp: { calls: 3, ms: 300, mostMs: 8000 } };
const kMs = 400;
const kPatience = 1000; // ms

/** The other runtime's curve ends where it can't go on, or a call takes longer than kPatience. */
async function curve({ lengths, workload }, quick) {
  const points = Object.fromEntries(kContestants.map(({ id }) => [id, []]));
  for (const length of quick ? lengths.slice(0, -3) : lengths) {
    const size = workload(length);
    const rows = exactRows(size);
    for (const contestant of kContestants) {
      const list = points[contestant.id];
      if (!contestant.ours && hasEnded(list.at(-1))) continue;
      list.push({ length, ...(await measure(contestant, size, rows)) });
      say(`${size.id} ${contestant.id}: ${describe(list.at(-1))}`);
    }
  }
  return points;
}

const hasEnded = (point) => point?.failure !== undefined || point?.minimum > kPatience;

async function measure(contestant, workload, rows) {
  const { process, result } = await enter(workload, contestant, rows, kEffort);
  if (!process) return result;
  try {
    const { minimum, median } = minimumAndMedian(await process.ask('measure', { ms: kMs }));
    return { minimum, median, heap: (await process.ask('heap')).wasm, way: result.way };
  } catch (error) {
    return { failure: error.message };
  } finally {
    await process.close();
  }
}

function describe({ failure, minimum, heap, way = '' }) {
  return failure ?? `${minimum.toPrecision(3)} ms, ${(heap / 2 ** 20).toFixed(1)} MiB ${way}`;
}

await main(async () => {
  const { quick = false, node } = readOptions(['node'], ['quick']);
  if (isRunElsewhere(node)) return;
  await setUp({ peers: true });
  const results = { machine: machine(), quick, curves: {} };
  for (const [name, description] of Object.entries(kCurves)) {
    results.curves[name] = { title: description.title, points: await curve(description, quick) };
  }
  mkdirSync(join(import.meta.dirname, 'results'), { recursive: true });
  writeFileSync(join(import.meta.dirname, 'results/scaling.json'), `${JSON.stringify(results, null, 1)}\n`);
  writeFileSync(join(import.meta.dirname, 'scaling.svg'), plot(results));
  say('wrote bench/results/scaling.json and bench/scaling.svg');
});
