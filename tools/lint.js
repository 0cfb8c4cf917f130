// npm run lint: format, style and types of everything that is written by hand. `tests/checks` runs the same list.
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ensurePackages } from './build.js';
import { configureHost, ensureHostPackages, hostFolder } from './host.js';
import { capture, ensureSystemPackages, main, projectRoot, SetupError, say } from './machine.js';

const kLlvm = '/usr/lib/llvm-19/bin';
const kTypeProjects = [
  'tsconfig.json',
  'web/tsconfig.json',
  'tests/types/tsconfig.json',
  'tests/types/tsconfig.browser.json',
];

/** Each check throws with the tool's findings. */
export const checks = {
  'JavaScript, JSON and CSS: format and style (biome)': () => node('@biomejs/biome/bin/biome', ['ci', '--colors=off']),
  'E-091: types (tsc)': () => {
    for (const project of kTypeProjects.filter((name) => existsSync(join(projectRoot, name)))) {
      node('typescript/bin/tsc', ['--noEmit', '--emitDeclarationOnly', 'false', '-p', project]);
    }
  },
  'C++: format (clang-format)': () =>
    capture(`${kLlvm}/clang-format`, [
      '--dry-run',
      '-Werror',
      ...cppFiles(['src', 'bindings', 'tests/host', 'bench/limits', 'bench/instructions']),
    ]),
  'C++: style and pitfalls (clang-tidy)': () => {
    configureHost();
    const files = cppFiles(['src']).filter((name) => name.endsWith('.cpp'));
    capture(`${kLlvm}/clang-tidy`, ['--quiet', '--warnings-as-errors=*', '-p', hostFolder, ...files]);
  },
};

export function ensureLintPackages() {
  ensureSystemPackages(
    { 'clang-format-19': `${kLlvm}/clang-format`, 'clang-tidy-19': `${kLlvm}/clang-tidy` },
    'the checks of style',
  );
  ensureHostPackages(); // clang-tidy reads the kernels as the host build does
}

function node(script, args) {
  capture(process.execPath, [join(projectRoot, 'node_modules', script), ...args]);
}

function cppFiles(folders) {
  return folders.flatMap((folder) =>
    readdirSync(join(projectRoot, folder))
      .filter((name) => /\.(cpp|h)$/.test(name))
      .map((name) => join(folder, name)),
  );
}

if (import.meta.filename === process.argv[1]) {
  await main(() => {
    ensurePackages();
    ensureLintPackages();
    const failures = Object.entries(checks).filter(([name, check]) => {
      try {
        check();
        say(`ok: ${name}`);
        return false;
      } catch (error) {
        console.error(error.message);
        return true;
      }
    });
    if (failures.length) throw new SetupError(`failed: ${failures.map(([name]) => name).join('; ')}`);
  });
}
