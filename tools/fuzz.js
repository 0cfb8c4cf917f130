// npm run fuzz -- SECONDS: random calls of attention on the kernels of this machine, guided by what code they reach, each
// against the definition and under sanitizers. `npm test` does a minute of it. What it learns about reaching code stays
// in build/fuzz; an input that fails is left there too, and named, to be run again with build/host/tests/host/fuzz FILE.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildHost, ensureHostPackages, hostFolder } from './host.js';
import { main, projectRoot, run, SetupError } from './machine.js';

await main(() => {
  const seconds = Number(process.argv[2]);
  if (!Number.isInteger(seconds) || seconds < 1) throw new SetupError('usage: npm run fuzz -- SECONDS');
  ensureHostPackages();
  buildHost(['fuzz']);
  const corpus = join(projectRoot, 'build/fuzz/corpus');
  mkdirSync(corpus, { recursive: true });
  run(join(hostFolder, 'tests/host/fuzz'), [
    `-max_total_time=${seconds}`,
    ...['-max_len=160', '-len_control=0', '-print_final_stats=1', '-timeout=60', '-detect_leaks=0'],
    `-artifact_prefix=${join(projectRoot, 'build/fuzz')}/`,
    corpus,
  ]);
});
