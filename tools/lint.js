// npm run lint: format, style and types of everything that is written by hand. `tests/checks` runs the same list.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
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
  'the package: entries (publint) and types (are the types wrong)': checkPackage,
  'licences of what is shipped': checkLicences,
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

/** The tarball that npm would publish, through the checkers of its entries and of its types. */
async function checkPackage() {
  const folder = mkdtempSync(join(tmpdir(), 'attention-wasm-pack-'));
  try {
    const [{ filename }] = JSON.parse(capture('npm', ['pack', '--json', '--pack-destination', folder]));
    const tarball = readFileSync(join(folder, filename));
    const findings = [...(await entryFindings(tarball)), ...(await typeFindings(tarball))];
    if (findings.length) throw new Error(findings.join('\n'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function entryFindings(tarball) {
  const { publint } = await import('publint');
  const { formatMessage } = await import('publint/utils');
  const { messages, pkg } = await publint({ pack: { tarball: Uint8Array.from(tarball).buffer }, strict: true });
  return messages.map((message) => `publint: ${formatMessage(message, pkg)}`);
}

/** Entries that CommonJS can't reach by require() in every Node are meant: the package is of ES modules alone. */
const kMeant = new Set(['CJSResolvesToESM']);

async function typeFindings(tarball) {
  const { checkPackage: check, createPackageFromTarballData } = await import('@arethetypeswrong/core');
  const { problems, types } = await check(createPackageFromTarballData(Uint8Array.from(tarball)));
  if (!types) return ['attw: no types'];
  // Before `exports` was known, resolution looked for folders: no Node or bundler of the last years does.
  return problems
    .filter(({ kind, resolutionKind }) => !kMeant.has(kind) && resolutionKind !== 'node10')
    .map((problem) => `attw: ${JSON.stringify(problem)}`);
}

/** Whatever is installed with the package, or bundled into it, has a licence that allows that; and is named in LICENSE. */
function checkLicences() {
  const { dependencies = {} } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  const named = readFileSync(join(projectRoot, 'LICENSE'), 'utf8');
  for (const name of Object.keys(dependencies)) {
    const { license } = JSON.parse(readFileSync(join(projectRoot, 'node_modules', name, 'package.json'), 'utf8'));
    if (!kLicences.includes(license)) throw new Error(`${name} has the licence ${license}`);
    if (!named.includes(name)) throw new Error(`LICENSE doesn't name ${name}`);
  }
  for (const name of kLinked) if (!named.includes(name)) throw new Error(`LICENSE doesn't name ${name}`);
}

const kLicences = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD'];
/** What the compiler puts into dist/. */
const kLinked = ['Emscripten', 'musl', 'compiler-rt', 'libc++', 'dlmalloc'];

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
  await main(async () => {
    ensurePackages();
    ensureLintPackages();
    const failures = [];
    for (const [name, check] of Object.entries(checks)) {
      try {
        await check();
        say(`ok: ${name}`);
      } catch (error) {
        console.error(error.message);
        failures.push(name);
      }
    }
    if (failures.length) throw new SetupError(`failed: ${failures.join('; ')}`);
  });
}
