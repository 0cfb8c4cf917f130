// Finds Emscripten, or brings it into the user's cache.
//
// Debian 12's own Emscripten (3.1.6, LLVM 14) predates the final relaxed-SIMD opcodes and its embind needs eval.
// So the compiler is bookworm's clang-19, and Emscripten's own files are unpacked, not installed, from the
// trixie suite of the mirror that apt already uses. The system's apt state is left as it is.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { capture, ensureSystemPackages, findProgram, projectRoot, run, SetupError, say, userCache } from './machine.js';

const kOldestVersion = [3, 1, 60];
/** Raise when the recipe below changes: the folder's name is its key. */
const kRecipe = 'emscripten-trixie-1';
const kLlvm = '/usr/lib/llvm-19/bin';
const kPackages = ['emscripten', 'binaryen', 'libc6', 'libstdc++6', 'libgcc-s1'];

/** @returns {{ root: string, env: Record<string, string | undefined>, version: string }} */
export function ensureEmscripten() {
  const own = emscriptenOnPath();
  if (own) return own;
  if (!findProgram('apt-get') || !findProgram('dpkg')) {
    throw new SetupError(
      'building needs Emscripten 3.1.60 or later, and there is none on the PATH.\n' +
        'Install it with emsdk (https://emscripten.org/docs/getting_started/downloads.html) or your package manager ' +
        '(brew install emscripten, apt-get install emscripten on Debian 13), then run the same command again.',
    );
  }
  ensureSystemPackages(
    {
      python3: '/usr/bin/python3',
      cmake: '/usr/bin/cmake',
      make: '/usr/bin/make',
      'clang-19': `${kLlvm}/clang`,
      'lld-19': `${kLlvm}/wasm-ld`,
      'llvm-19': `${kLlvm}/llvm-ar`,
    },
    'the build',
  );
  const folder = join(userCache(), kRecipe);
  if (!existsSync(folder)) unpackEmscripten(folder);
  const root = join(folder, 'usr/share/emscripten');
  const env = { ...process.env, EM_CONFIG: join(folder, 'config.py') };
  return { root, env, version: readVersion(join(root, 'emcc'), env) };
}

function emscriptenOnPath() {
  const emcc = findProgram('emcc');
  if (!emcc || !findProgram('cmake')) return null;
  const version = readVersion(emcc, process.env);
  const parts = version.split('.').map(Number);
  const difference = parts.map((part, i) => part - kOldestVersion[i]).find((d) => d !== 0) ?? 0;
  if (difference < 0) return null;
  // emcc on the PATH may be a wrapper; em-config knows where the real root is.
  const emConfig = join(dirname(emcc), 'em-config');
  const root = existsSync(emConfig) ? capture(emConfig, ['EMSCRIPTEN_ROOT']).trim() : dirname(emcc);
  return { root, env: { ...process.env }, version };
}

function readVersion(emcc, env) {
  const line = capture(emcc, ['--version'], { env }).split('\n')[0];
  const match = line.match(/\b(\d+\.\d+\.\d+)/);
  if (!match) throw new SetupError(`${emcc} --version said nothing usable: ${line}`);
  return match[1];
}

function unpackEmscripten(folder) {
  // Work under a temporary name and rename at the end: a broken download is never taken for a tool chain.
  const work = mkdtempSync(`${folder}.`);
  try {
    say('fetching Emscripten (about 250 MB, once per machine)');
    const packages = downloadPackages(work);
    say('unpacking Emscripten');
    for (const file of packages) unpackPackage(file, work);
    rmSync(join(work, 'apt'), { recursive: true });
    wrapBinaryen(work, folder);
    linkAcorn(work);
    writeConfig(work, folder);
    renameSync(work, folder);
  } catch (error) {
    rmSync(work, { recursive: true, force: true });
    if (existsSync(folder)) return; // another process finished first
    throw error;
  }
}

/** Downloads with a private apt state that knows only the trixie suite of the system's own mirror. */
function downloadPackages(work) {
  const apt = join(work, 'apt');
  for (const name of ['lists/partial', 'cache/archives/partial', 'parts'])
    mkdirSync(join(apt, name), { recursive: true });
  writeFileSync(join(apt, 'sources.list'), `deb ${debianMirror()} trixie main\n`);
  const options = [
    `Dir::Etc::sourcelist=${apt}/sources.list`,
    `Dir::Etc::sourceparts=${apt}/parts`,
    `Dir::State::lists=${apt}/lists`,
    'Dir::State::status=/dev/null',
    `Dir::Cache=${apt}/cache`,
    'APT::Sandbox::User=root', // apt's own download user can't write into a home folder
  ].flatMap((option) => ['-o', option]);
  capture('apt-get', [...options, 'update']);
  capture('apt-get', [...options, 'download', ...kPackages], { cwd: apt });
  return readdirSync(apt)
    .filter((name) => name.endsWith('.deb'))
    .map((name) => join(apt, name));
}

function debianMirror() {
  const list = capture('apt-get', ['indextargets', '--format', '$(SITE) $(CODENAME)']);
  const line = list.split('\n').find((text) => /\bbookworm$/.test(text)) ?? list.split('\n')[0];
  const site = line?.split(' ')[0];
  if (!site)
    throw new SetupError('apt has no Debian mirror set up, so Emscripten can’t be fetched: install emsdk instead.');
  return site;
}

function unpackPackage(file, work) {
  const name = file.slice(file.lastIndexOf('/') + 1).split('_')[0];
  if (name !== 'emscripten') {
    capture('dpkg-deb', ['-x', file, work]);
    return;
  }
  // Only this folder is needed; the rest of the package is documentation and tests.
  const script = `dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" ./usr/share/emscripten`;
  capture('sh', ['-c', script, 'sh', file, work]);
}

/** trixie's binaryen wants a newer glibc than bookworm's: start it through its own loader. */
function wrapBinaryen(work, folder) {
  const libraries = readdirSync(join(work, 'usr/lib')).find((name) => /-linux-gnu$/.test(name));
  const loader = readdirSync(join(work, 'usr/lib', libraries)).find((name) => /^ld-linux/.test(name));
  const target = join(work, 'binaryen/bin');
  mkdirSync(target, { recursive: true });
  symlinkSync('../usr/lib', join(work, 'binaryen/lib'));
  const there = join(folder, 'usr/lib', libraries);
  for (const program of readdirSync(join(work, 'usr/bin')).filter((name) => /^wasm/.test(name))) {
    writeFileSync(
      join(target, program),
      `#!/bin/sh\nexec '${there}/${loader}' --library-path '${there}' '${folder}/usr/bin/${program}' "$@"\n`,
    );
    chmodSync(join(target, program), 0o755);
  }
}

/** Emscripten's JavaScript optimiser needs acorn, which Debian packages apart; npm's is the same. */
function linkAcorn(work) {
  const version = JSON.parse(readFileSync(join(projectRoot, 'tools/toolchain.json'), 'utf8')).acorn;
  const modules = join(work, 'usr/share/emscripten/node_modules');
  rmSync(modules, { recursive: true, force: true });
  mkdirSync(modules, { recursive: true });
  const packed = JSON.parse(
    capture('npm', ['pack', '--json', '--silent', `acorn@${version.version}`], { cwd: modules }),
  )[0].filename;
  const file = join(modules, packed);
  const digest = createHash('sha512').update(readFileSync(file)).digest('base64');
  if (`sha512-${digest}` !== version.integrity)
    throw new SetupError(`acorn ${version.version}: the download has another checksum than expected`);
  capture('tar', ['-xzf', file, '-C', modules]);
  renameSync(join(modules, 'package'), join(modules, 'acorn'));
  rmSync(file);
}

function writeConfig(work, folder) {
  writeFileSync(
    join(work, 'config.py'),
    [
      `LLVM_ROOT = '${kLlvm}'`,
      `BINARYEN_ROOT = '${folder}/binaryen'`,
      `NODE_JS = 'node'`,
      `CACHE = '${folder}/usr/share/emscripten/cache'`,
      'FROZEN_CACHE = True', // every library that we link comes prebuilt; building one would be a mistake
      '',
    ].join('\n'),
  );
}

if (import.meta.filename === process.argv[1]) {
  const { root, version } = ensureEmscripten();
  say(`Emscripten ${version} in ${root}`);
  run(join(root, 'emcc'), ['--version'], { env: ensureEmscripten().env });
}
