// Options that several commands share.
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { SetupError } from '../tools/machine.js';
import { otherNode } from './setup.js';

/** Reads `--name value` and, for names in `flags`, `--name`. @param {string[]} texts @param {string[]} flags */
export function readOptions(texts, flags = []) {
  const of = (names, type) => Object.fromEntries(names.map((name) => [name, { type }]));
  try {
    return parseArgs({ options: { ...of(texts, 'string'), ...of(flags, 'boolean') } }).values;
  } catch (error) {
    throw new SetupError(error.message);
  }
}

/** The names in a comma-separated text, in the order of `all`. @param {string | undefined} text none: all of them */
export function choose(option, text, all) {
  const names = text?.split(',') ?? all;
  const unknown = names.find((name) => !all.includes(name));
  if (unknown !== undefined) throw new SetupError(`--${option} must name some of ${all.join(', ')}; got ${unknown}`);
  return all.filter((name) => names.includes(name));
}

/**
 * Runs this very command under another Node, where one was asked for and it isn't this one.
 * @param {string | undefined} major @returns {boolean} whether that is done
 */
export function isRunElsewhere(major) {
  if (major === undefined || major === process.versions.node.split('.')[0]) return false;
  const { status } = spawnSync(otherNode(major), process.argv.slice(1), { stdio: 'inherit' });
  process.exitCode = status ?? 1;
  return true;
}
