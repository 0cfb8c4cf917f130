// npm run build: dist/ through CMake and Emscripten, its JavaScript through a bundler, and the types through tsc.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { bundle } from './bundle.js';
import { finishGlue, kDist } from './glue.js';
import { findProgram, main, projectRoot, run, say } from './machine.js';
import { ensureEmscripten } from './toolchain.js';

/** npm packages as the lock file says; skipped while the lock file is the one that was installed. */
export function ensurePackages() {
  const lock = createHash('sha256')
    .update(readFileSync(join(projectRoot, 'package-lock.json')))
    .digest('hex');
  const stamp = join(projectRoot, 'node_modules/.installed');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  say('installing npm packages');
  run('npm', ['ci', '--no-audit', '--no-fund']);
  writeFileSync(stamp, lock);
}

/** Builds the named targets, or all of them. */
export function build(targets = []) {
  const { root, env, version } = ensureEmscripten();
  const folder = join(projectRoot, 'build/wasm');
  // Not CMakeCache.txt: that one is there after a configuration that failed, too.
  if (!['Makefile', 'build.ninja'].some((name) => existsSync(join(folder, name)))) {
    say(`configuring with Emscripten ${version}`);
    const generator = findProgram('ninja') ? 'Ninja' : 'Unix Makefiles';
    run(
      'cmake',
      [
        ...['-S', '.', '-B', folder, '-G', generator, '-DCMAKE_BUILD_TYPE=Release'],
        `-DCMAKE_TOOLCHAIN_FILE=${join(root, 'cmake/Modules/Platform/Emscripten.cmake')}`,
      ],
      { env },
    );
  }
  say('building the wasm modules');
  const targetOptions = targets.length ? ['--target', ...targets] : [];
  run('cmake', ['--build', folder, '-j', String(availableParallelism()), ...targetOptions], { env });
  const files = finishGlue();
  if (targets.length > 0) return;
  for (const name of readdirSync(kDist)) {
    if (name.startsWith('attention.') && !files.has(name)) rmSync(join(kDist, name)); // of an earlier version
  }
}

/** What runs: the binaries and the JavaScript. */
export async function buildFiles() {
  build();
  await bundle();
}

/** All of dist/: what npm publishes. */
export async function buildPackage() {
  await buildFiles();
  buildTypes();
}

/** dist/types, from the JSDoc in bindings/. */
function buildTypes() {
  run(process.execPath, [join(projectRoot, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.json']);
}

if (import.meta.filename === process.argv[1]) {
  await main(async () => {
    ensurePackages();
    if (process.argv.length > 2) build(process.argv.slice(2));
    else await buildPackage();
  });
}
