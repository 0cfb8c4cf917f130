// The kernels on this machine instead of in wasm: configures and builds tests/host with clang-19 and SIMDe.
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { capture, ensureSystemPackages, projectRoot } from './machine.js';

const kLlvm = '/usr/lib/llvm-19';
export const hostFolder = join(projectRoot, 'build/host');

export function ensureHostPackages() {
  ensureSystemPackages(
    {
      cmake: '/usr/bin/cmake',
      make: '/usr/bin/make',
      'clang-19': `${kLlvm}/bin/clang++`,
      'libclang-rt-19-dev': `${kLlvm}/lib/clang/19/lib/linux`,
      'libsimde-dev': '/usr/include/simde/wasm/simd128.h',
    },
    'the tests of the kernels outside wasm',
  );
}

/** Writes build/host with its compile_commands.json. */
export function configureHost() {
  if (existsSync(join(hostFolder, 'Makefile'))) return;
  capture('cmake', [
    ...['-S', '.', '-B', hostFolder, '-G', 'Unix Makefiles'],
    '-DCMAKE_BUILD_TYPE=None', // every option is in tests/host/CMakeLists.txt
    `-DCMAKE_CXX_COMPILER=${kLlvm}/bin/clang++`,
  ]);
}

/** Builds the named targets, or all of them. */
export function buildHost(targets = []) {
  configureHost();
  const targetOptions = targets.length ? ['--target', ...targets] : [];
  capture('cmake', ['--build', hostFolder, '-j', String(availableParallelism()), ...targetOptions]);
}

/** @returns {string} what ctest printed; throws with it when a test fails */
export function testHost() {
  buildHost();
  capture(process.execPath, ['tests/host/export-cases.js', join(hostFolder, 'cases.bin')]);
  return capture('ctest', ['--test-dir', hostFolder, '--output-on-failure', '-j', String(availableParallelism())]);
}
