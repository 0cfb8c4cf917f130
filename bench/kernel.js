// npm run bench:kernel: our own builds alone, in a minute or so, for daily work.
//
//   --only P1,D1              some of the workloads
//   --builds relaxed          some of baseline, relaxed, baseline-2t, relaxed-2t, int8; the first two by default
//   --node 24                 under npm's Node 24
//   --save                    keeps the figures; later runs print the change against them
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { main, say } from '../tools/machine.js';
import { choose, isRunElsewhere, readOptions } from './command-line.js';
import { contest } from './contest.js';
import { contestants, takesPart } from './contestants.js';
import { fraction, rate } from './measures.js';
import { setUp } from './setup.js';
import { workloads } from './workloads.js';

/** @type {import('./contest.js').Effort} */
const kEffort = { rounds: 5, ms: 100, mostMs: 1000, limitMs: 20, warmUp: { calls: 3, ms: 300, mostMs: 1500 } };

const kBuilds = contestants.filter(({ ours }) => ours).map(({ id }) => id.replace('ours-', ''));
const major = process.versions.node.split('.')[0];
const kSaved = join(import.meta.dirname, `results/kernel-node${major}.json`);

async function measure(ids, builds) {
  const mine = contestants.filter(({ id }) => builds.includes(id.replace('ours-', '')));
  const saved = existsSync(kSaved) ? JSON.parse(readFileSync(kSaved, 'utf8')) : {};
  const now = {};
  for (const id of ids) {
    const workload = workloads[id];
    const chosen = mine.filter((contestant) => takesPart(contestant, id));
    if (chosen.length === 0) continue;
    const { results, limits } = await contest(workload, chosen, kEffort, () => {});
    for (const contestant of chosen) {
      const result = results[contestant.id];
      const name = `${id} ${contestant.label}`;
      console.log(name.padEnd(24), result.failure ?? figures(workload, contestant, result, limits, saved[name]));
      now[name] = result.minimum;
    }
  }
  return { ...saved, ...now };
}

function figures(workload, contestant, result, limits, before) {
  const { minimum, median } = result;
  const part = fraction(workload, limits, contestant, result);
  return [
    `${minimum.toPrecision(3).padStart(6)} ms (median ${median.toPrecision(3)})`,
    `${rate(workload, minimum).toFixed(1).padStart(5)} GFLOP/s`,
    part === null ? `error ${result.error.toExponential(1)}` : `${(part * 100).toFixed(0).padStart(4)} % of the limit`,
    before
      ? `${((minimum / before - 1) * 100).toFixed(1).padStart(6)} % against the saved ${before.toPrecision(3)} ms`
      : '',
  ].join('  ');
}

await main(async () => {
  const options = readOptions(['only', 'builds', 'node'], ['save']);
  const ids = choose('only', options.only, Object.keys(workloads));
  const builds = choose('builds', options.builds ?? 'baseline,relaxed', kBuilds);
  if (isRunElsewhere(options.node)) return;
  await setUp({ peers: false });
  say(`Node ${process.versions.node}, minimum of all calls`);
  const figuresNow = await measure(ids, builds);
  if (!options.save) return;
  mkdirSync(join(kSaved, '..'), { recursive: true });
  writeFileSync(kSaved, `${JSON.stringify(figuresNow, null, 1)}\n`);
});
