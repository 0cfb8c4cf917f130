// Work that is done again only when what it reads has changed.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from './machine.js';

/**
 * Does `work`, unless its inputs are those of the last time and `result` is there.
 * @param {string} name of the work @param {{ inputs: string[], result: string, work: () => Promise<void> }} of inputs:
 *   files and folders; result: the last file that the work writes
 */
export async function whenChanged(name, { inputs, result, work }) {
  const stamp = join(projectRoot, `build/${name}.inputs`);
  const now = fingerprint(inputs);
  if (existsSync(join(projectRoot, result)) && existsSync(stamp) && readFileSync(stamp, 'utf8') === now) return;
  await work();
  mkdirSync(join(projectRoot, 'build'), { recursive: true });
  writeFileSync(stamp, now);
}

function fingerprint(inputs) {
  const hash = createHash('sha256');
  for (const path of inputs.flatMap((name) => filesBelow(join(projectRoot, name)))) {
    hash.update(path).update('\0').update(readFileSync(path));
  }
  return hash.digest('hex');
}

function filesBelow(path) {
  if (!existsSync(path)) return [];
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => filesBelow(join(path, name)));
}
