// What the scripts need of the machine: running commands, system packages, messages.
// Only Node's own modules here: this code runs before `npm ci` has.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';

export const projectRoot = resolve(import.meta.dirname, '..');

/** A condition the user has to mend; printed without a stack. */
export class SetupError extends Error {}

export function say(message) {
  console.log(`[attention-wasm] ${message}`);
}

/** Where the tool chain lives: outside every checkout, so that a second clone builds at once. */
export function userCache() {
  const base =
    process.env.ATTENTION_WASM_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'attention-wasm');
  mkdirSync(base, { recursive: true });
  return base;
}

export function findProgram(name) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      /* not in this folder */
    }
  }
  return null;
}

/** Runs a command with its output shown; throws with the command line when it fails. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { stdio: 'inherit', cwd: projectRoot, ...options });
  if (result.error) throw new SetupError(`${command}: ${result.error.message}`);
  if (result.status !== 0) {
    throw new SetupError(`failed (${result.status ?? result.signal}): ${command} ${args.join(' ')}`);
  }
}

/** Runs a command and returns its standard output; the output of a failure is shown. */
export function capture(command, args, options = {}) {
  const result = spawnSync(command, args, { encoding: 'utf8', cwd: projectRoot, maxBuffer: 1 << 28, ...options });
  if (result.error) throw new SetupError(`${command}: ${result.error.message}`);
  if (result.status !== 0) {
    throw new SetupError(
      `failed (${result.status ?? result.signal}): ${command} ${args.join(' ')}\n${result.stdout}${result.stderr}`,
    );
  }
  return result.stdout;
}

let aptListsAreFresh = false;

/**
 * Makes sure that system packages are there. `wanted` maps a package to a file that proves it.
 * Installs only as root; anyone else is shown the one command to run.
 */
export function ensureSystemPackages(wanted, purpose) {
  const missing = Object.entries(wanted)
    .filter(([, proof]) => !existsSync(proof))
    .map(([name]) => name);
  if (missing.length === 0) return;
  const command = `apt-get install -y --no-install-recommends ${missing.join(' ')}`;
  if (!findProgram('apt-get')) {
    throw new SetupError(
      `${purpose} needs ${missing.join(', ')}. This system has no apt-get: install them with its own ` +
        'package manager (or use Debian 12 or later), then run the same command again.',
    );
  }
  if (process.getuid() !== 0) {
    throw new SetupError(
      `${purpose} needs system packages. Run this once, then the same command again:\n\n    sudo ${command}\n`,
    );
  }
  say(`installing for ${purpose}: ${missing.join(' ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const quiet = { env, stdio: ['ignore', 'pipe', 'pipe'] };
  if (!aptListsAreFresh) capture('apt-get', ['update', '-qq'], quiet);
  aptListsAreFresh = true;
  capture('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...missing], quiet);
  const still = missing.filter((name) => !existsSync(wanted[name]));
  if (still.length)
    throw new SetupError(
      `apt-get installed ${still.join(', ')}, but ${still.map((n) => wanted[n]).join(', ')} is not there.`,
    );
}

/** Runs a script's main function; a SetupError ends it with its message alone. */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.error(`\n[attention-wasm] ${error.message}`);
    process.exitCode = 1;
  }
}
