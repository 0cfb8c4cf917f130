// npm run bench: every workload beside other runtimes, in one run, so that the ratios mean something.
//
//   --only P1,D1        some of the workloads
//   --peers ours,jax    some of the contestants (contestants.js)
//   --quick             few samples, for a look
//   --node 24           under npm's Node 24 instead of this one
//
// Prints Markdown, and writes results/: node<major>.json for a full run, partial.json for any other.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { main, say } from '../tools/machine.js';
import { choose, isRunElsewhere, readOptions } from './command-line.js';
import { contest, kFull, kQuick } from './contest.js';
import { chosenContestants, contestants } from './contestants.js';
import { report } from './report.js';
import { machine, setUp } from './setup.js';
import { workloads } from './workloads.js';

const kIds = [...Object.keys(workloads), 'S0'];

async function runAll(ids, chosen, quick) {
  const effort = quick ? kQuick : kFull;
  const run = { date: new Date().toISOString(), machine: machine(), quick, workloads: {} };
  const isFull = !quick && ids.length === kIds.length && chosen.length === contestants.length;
  for (const id of ids) {
    run.workloads[id] =
      id === 'S0' ? await startUps(run, chosen, effort) : await contest(workloads[id], chosen, effort, say);
    save(run, 'partial');
  }
  if (isFull) save(run, `node${process.versions.node.split('.')[0]}`);
  console.log(`\n${report(run)}`);
}

async function startUps(run, chosen, { rounds }) {
  const { startUp } = await import('./start-up.js'); // needs a bundler, which only now is certainly there
  const small = run.workloads.S1?.results ?? {};
  const ways = Object.fromEntries(Object.entries(small).map(([id, { way }]) => [id, way]));
  return { results: await startUp(chosen, ways, rounds, say) };
}

function save(run, name) {
  const folder = join(import.meta.dirname, 'results');
  mkdirSync(folder, { recursive: true });
  // Of the times, their number: what they say is in minimum and median.
  const text = JSON.stringify(run, (key, value) => (key === 'times' ? value.length : value), 1);
  writeFileSync(join(folder, `${name}.json`), `${text}\n`);
}

await main(async () => {
  const { only, peers, quick = false, node } = readOptions(['only', 'peers', 'node'], ['quick']);
  const ids = choose('only', only, kIds);
  const chosen = chosenContestants(peers?.split(',') ?? []);
  if (isRunElsewhere(node)) return;
  await setUp({ peers: true });
  await runAll(ids, chosen, quick);
});
