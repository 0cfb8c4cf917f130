// What is made of Emscripten's output: dist/ with a binary for each build, and the JavaScript that they need.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { projectRoot, SetupError } from './machine.js';

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

export const kDist = join(projectRoot, 'dist');
/** Where CMake puts what Emscripten makes. */
const kMade = join(projectRoot, 'build/wasm/made');

/**
 * Brings what Emscripten made to dist/: a binary for each build, the glue of those with threads, and names for the others.
 * @returns {Set<string>} the files
 */
export function finishGlue() {
  mkdirSync(kDist, { recursive: true });
  /** @type {Record<string, string | Uint8Array>} */
  const files = {};
  for (const name of readdirSync(kMade).filter((file) => file.endsWith('.js'))) {
    const binary = name.replace(/\.js$/, '.wasm');
    files[binary] = readFileSync(join(kMade, binary));
    for (const [file, text] of Object.entries(finishedGlue(name, readFileSync(join(kMade, name), 'utf8')))) {
      files[file] ??= text;
      if (files[file] !== text) throw new SetupError(`${name} isn't as the glue of other builds is`);
    }
  }
  for (const build of kInText) Object.assign(files, inText(build, files[`attention.${build}.wasm`]));
  for (const [file, content] of Object.entries(files)) writeWhenChanged(file, content);
  return new Set(Object.keys(files));
}

/** @param {string} name @param {string} glue @returns {Record<string, string>} files of dist/ */
function finishedGlue(name, glue) {
  if (!kThreadedEnd.test(glue)) return namesIn(name, glue);
  const edited = kGlueEdits.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), glue);
  const whole = edited.replace(kThreadedEnd, 'export default Module;\n');
  if (/workerOptions|isPthread|import\(["']|new URL\(["'](?!\.\/)/.test(whole)) {
    throw new SetupError(`${name} isn't as expected: another Emscripten? Adapt kGlueEdits in tools/glue.js.`);
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
      `${name} isn't as expected: another Emscripten? Adapt bindings/single.js and kNames in tools/glue.js.`,
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

/** attention.<build>.text.js: base64 of the deflated binary, which bindings/inflate.js reads. */
function inText(build, binary) {
  if (!binary) return {};
  const text = deflateRawSync(binary, { level: 9 }).toString('base64');
  return {
    [`attention.${build}.text.js`]: `export default '${text}';\n`,
    [`attention.${build}.text.d.ts`]: 'declare const text: string;\nexport default text;\n',
  };
}

/** @param {string} name in dist/ @param {string | Uint8Array} content */
function writeWhenChanged(name, content) {
  const file = join(kDist, name);
  if (!existsSync(file) || !readFileSync(file).equals(Buffer.from(content))) writeFileSync(file, content);
}
