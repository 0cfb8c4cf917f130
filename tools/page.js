// npm run build:web: builds the page into build/page with Vite, a folder that any host can serve. Does nothing when no
// input has changed.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build as buildKernels, ensurePackages } from './build.js';
import { main, projectRoot, say } from './machine.js';

const kInputs = ['web', 'bindings', 'dist', 'package-lock.json'];

/** @returns {Promise<string>} the folder of the built page */
export async function buildPage() {
  const folder = join(projectRoot, 'build/page');
  const stamp = join(projectRoot, 'build/page.inputs');
  const now = fingerprint();
  if (existsSync(join(folder, 'index.html')) && existsSync(stamp) && readFileSync(stamp, 'utf8') === now) return folder;
  say('building the page');
  const { build } = await import('vite'); // not there before the npm packages are
  await build({ configFile: join(projectRoot, 'web/vite.config.js'), logLevel: 'warn' });
  mkdirSync(join(projectRoot, 'build'), { recursive: true });
  writeFileSync(stamp, now);
  return folder;
}

function fingerprint() {
  const hash = createHash('sha256');
  for (const path of kInputs.flatMap((name) => filesBelow(join(projectRoot, name)))) {
    hash.update(path).update('\0').update(readFileSync(path));
  }
  return hash.digest('hex');
}

function filesBelow(path) {
  if (!existsSync(path)) return [];
  const entries = readdirSyncOrFile(path);
  if (!entries) return [path];
  return entries.flatMap((name) => filesBelow(join(path, name)));
}

function readdirSyncOrFile(path) {
  try {
    return readdirSync(path).sort();
  } catch (error) {
    if (error.code === 'ENOTDIR') return null;
    throw error;
  }
}

if (import.meta.filename === process.argv[1]) {
  await main(async () => {
    ensurePackages();
    buildKernels();
    say(`the page is in ${await buildPage()}`);
  });
}
