// npm run build: dist/ through CMake and Emscripten, its JavaScript through a bundler, and the types through tsc.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
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
  finishGlue();
  if (kInText.every((name) => existsSync(join(projectRoot, `dist/attention.${name}.wasm`)))) writeTexts();
}

/**
 * What Emscripten writes into its JavaScript and bundlers stumble over: pattern, replacement. bindings/wasm.js alone
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
];

/** How the glue of builds with threads ends: a module that runs itself in a worker, by an await that old formats lack. */
const kThreadedEnd = /export default Module;\s*var isPthread = [\s\S]*isPthread && Module\(\);\s*$/;

function finishGlue() {
  const folder = join(projectRoot, 'dist');
  for (const name of readdirSync(folder).filter((file) => /^attention\.[\w-]+\.js$/.test(file))) {
    const file = join(folder, name);
    const glue = readFileSync(file, 'utf8');
    const edited = kGlueEdits.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), glue);
    if (kThreadedEnd.test(edited)) writeFileSync(file.replace(/\.js$/, '.worker.js'), workerGlue(edited));
    const whole = edited.replace(kThreadedEnd, 'export default Module;\n');
    if (/workerOptions|isPthread|import\(["']|new URL\(["'](?!\.\/)/.test(whole)) {
      throw new SetupError(`${name} isn't as expected: another Emscripten? Adapt kGlueEdits in tools/build.js.`);
    }
    if (whole !== glue) writeFileSync(file, whole);
  }
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
  const folder = join(projectRoot, 'dist');
  for (const name of kInText) {
    const text = deflateRawSync(readFileSync(join(folder, `attention.${name}.wasm`)), { level: 9 }).toString('base64');
    writeFileSync(join(folder, `attention.${name}.text.js`), `export default '${text}';\n`);
    writeFileSync(join(folder, `attention.${name}.text.d.ts`), 'declare const text: string;\nexport default text;\n');
  }
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
