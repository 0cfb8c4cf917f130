// npm run build: dist/ through CMake and Emscripten, its JavaScript through a bundler, and the types through tsc.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { bundle } from './bundle.js';
import { findProgram, main, projectRoot, run, SetupError, say } from './machine.js';
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
  finish();
  writeTexts();
}

/**
 * What Emscripten writes into its JavaScript and bundlers stumble over: pattern, replacement. bindings/builds.js alone
 * names the files of dist/, in the form that bundlers read.
 */
const kGlueEdits = [
  // Bundlers would build this file once more, as a worker in their own format, which it can't be in.
  [
    /var workerOptions=(\{[^}]*\});worker=new Worker\(new URL\([^)]*\),workerOptions\)/,
    'worker=new Worker(Module.workerUrl,$1)',
  ],
  [/worker=new Worker\(new URL\([^)]*\),/, 'worker=new Worker(Module.workerUrl,'],
  [/return new URL\("attention\.[\w-]+\.wasm",import\.meta\.url\)\.href/, 'return""'],
  // The bytes are brought by bindings/wasm-binary.js: without its use, bundlers drop what fetches them.
  [/wasmBinaryFile\?\?=findWasmBinary\(\);instantiateAsync\([^;]*;return\s?\{\}/, ''],
  // Node's own modules, asked for in Node only: out of sight of bundlers for browsers.
  [
    /await import\((["'])(module|worker_threads)\1\)/g,
    'await import(/* @vite-ignore *//* webpackIgnore: true */"node:".concat("$2"))',
  ],
  // The builds have the same glue, but for this name.
  [/"attention\.[\w-]+\.wasm"/g, '"attention.wasm"'],
];

/** How the glue of builds with threads ends: a module that runs itself in a worker, by an await that old formats lack. */
const kThreadedEnd = /export default Module;\s*var isPthread = [\s\S]*isPthread && Module\(\);\s*$/;

const kDist = join(projectRoot, 'dist');
/** Where CMake puts what Emscripten makes. */
const kMade = join(projectRoot, 'build/wasm/made');

/** Brings what Emscripten made to dist/: a binary for each build, the glue of those with threads, and names for the others. */
function finish() {
  mkdirSync(kDist, { recursive: true });
  /** @type {Record<string, string>} */
  const files = {};
  for (const name of readdirSync(kMade).filter((file) => file.endsWith('.js'))) {
    const binary = name.replace(/\.js$/, '.wasm');
    writeWhenChanged(binary, readFileSync(join(kMade, binary)));
    for (const [file, text] of Object.entries(finishedGlue(name, readFileSync(join(kMade, name), 'utf8')))) {
      files[file] ??= text;
      if (files[file] !== text) throw new SetupError(`${name} isn't as the glue of other builds is`);
    }
  }
  for (const [file, text] of Object.entries(files)) writeWhenChanged(file, text);
}

/** @param {string} name @param {string} glue @returns {Record<string, string>} files of dist/ */
function finishedGlue(name, glue) {
  if (!kThreadedEnd.test(glue)) return namesIn(name, glue);
  const edited = kGlueEdits.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), glue);
  const whole = edited.replace(kThreadedEnd, 'export default Module;\n');
  if (/workerOptions|isPthread|import\(["']|new URL\(["'](?!\.\/)/.test(whole)) {
    throw new SetupError(`${name} isn't as expected: another Emscripten? Adapt kGlueEdits in tools/build.js.`);
  }
  return {
    'attention.threads.js': whole,
    'attention.threads.worker.js': workerGlue(edited),
    // Else the type checker would read the glue itself.
    'attention.threads.d.ts': 'declare const factory: (options: object) => Promise<any>;\nexport default factory;\n',
  };
}

/** What the linker called the functions that bindings/single.js has, and the exports that it uses. */
const kNames = {
  kImports: /getWasmImports\(\)\{return\s?\{(\w+):wasmImports\}\}/,
  kRegister: /wasmImports=\{[^}]*\b(\w+):__embind_register_function\b/,
  kCopy: /wasmImports=\{[^}]*\b(\w+):__emscripten_memcpy_js\b/,
  kGrow: /wasmImports=\{[^}]*\b(\w+):_emscripten_resize_heap\b/,
  kMemory: /wasmMemory=wasmExports\["(\w+)"\]/,
  kTable: /wasmTable=wasmExports\["(\w+)"\]/,
  kStart: /addOnInit\(wasmExports\["(\w+)"\]\)/,
};
const kFunctions = 3;

/** @param {string} name @param {string} glue */
function namesIn(name, glue) {
  const found = Object.entries(kNames).map(([key, pattern]) => [key, pattern.exec(glue)?.[1]]);
  const functions = /wasmImports=\{([^}]*)\}/.exec(glue)?.[1].split(',') ?? [];
  if (found.some(([, letter]) => !letter) || functions.length !== kFunctions) {
    throw new SetupError(
      `${name} isn't as expected: another Emscripten? Adapt bindings/single.js and kNames in tools/build.js.`,
    );
  }
  const lines = (form) => found.map(([key, letter]) => form(key, letter)).join('');
  return {
    'attention.names.js': lines((key, letter) => `export const ${key} = '${letter}';\n`),
    'attention.names.d.ts': lines((key) => `export declare const ${key}: string;\n`),
  };
}

/** The same for the workers themselves: bundlers copy it as it is, and some minify it as a script, not as a module. */
function workerGlue(glue) {
  const here = '(globalThis.location?.href??"file:///")';
  return glue.replaceAll('import.meta.url', here).replace(kThreadedEnd, 'Module();\n');
}

/** Builds whose binaries stand in code as well: attention-wasm/inline, and the copy for when files are missing. */
const kInText = ['scalar', 'baseline', 'relaxed'];

/** dist/attention.<build>.text.js: base64 of the deflated binary. bindings/wasm-binary.js reads it. */
function writeTexts() {
  for (const name of kInText.filter((build) => existsSync(join(kDist, `attention.${build}.wasm`)))) {
    const text = deflateRawSync(readFileSync(join(kDist, `attention.${name}.wasm`)), { level: 9 }).toString('base64');
    writeWhenChanged(`attention.${name}.text.js`, `export default '${text}';\n`);
    writeWhenChanged(`attention.${name}.text.d.ts`, 'declare const text: string;\nexport default text;\n');
  }
}

/** @param {string} name in dist/ @param {string | Uint8Array} content */
function writeWhenChanged(name, content) {
  const file = join(kDist, name);
  if (!existsSync(file) || !readFileSync(file).equals(Buffer.from(content))) writeFileSync(file, content);
}

/** All of dist/: what npm publishes. */
export async function buildPackage() {
  build();
  await bundle();
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
