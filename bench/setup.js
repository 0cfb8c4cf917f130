// What has to be there before anything is measured.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, platform, release } from 'node:os';
import { join } from 'node:path';
import { buildFiles, ensurePackages } from '../tools/build.js';
import { run, SetupError, say } from '../tools/machine.js';
import { buildLimits } from './limits/build.js';

const folder = import.meta.dirname;

/** The builds of this package as their sources are now, the loops of limits/, and, if wanted, the other runtimes. */
export async function setUp({ peers }) {
  ensurePackages();
  if (peers) ensurePeers();
  await buildFiles();
  buildLimits();
}

export function ensurePeers() {
  const lock = createHash('sha256')
    .update(readFileSync(join(folder, 'package-lock.json')))
    .digest('hex');
  const stamp = join(folder, 'node_modules/.installed');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  say('installing the other runtimes (about 500 MB)');
  run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder });
  writeFileSync(stamp, lock);
}

/** The executable of another Node, from its npm package. @param {string} major */
export function otherNode(major) {
  ensurePeers();
  const system = platform() === 'darwin' ? 'node-bin-darwin' : `node-${platform()}`;
  const file = join(folder, `node_modules/${system}-${process.arch}/bin/node`);
  if (major !== '24' || !existsSync(file)) {
    throw new SetupError(`--node can be 24, where npm has a binary for this system; got ${major}`);
  }
  return file;
}

/** What the numbers belong to. */
export function machine() {
  return {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    system: `${platform()} ${release()}`,
    node: process.versions.node,
    v8: process.versions.v8,
    load: loadavg()[0],
  };
}
