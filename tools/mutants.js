// npm run test:mutants: breaks lines of the kernels, one at a time, in a copy of the tree; the tests outside wasm must
// notice each. A line that has changed since has to be named anew here, and the script says so.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { configureHost, ensureHostPackages, hostFolder } from './host.js';
import { capture, main, projectRoot, SetupError, say } from './machine.js';

/** [file, line as it stands, line as it is broken, what goes wrong] */
const kMutants = [
  ['state.h', 'madd(sum[n], scale[n], block[n])', 'wasm_f32x4_add(sum[n], block[n])', 'older sums keep their maximum'],
  ['state.h', 'max + std::log(sum)', 'max - std::log(sum)', 'the sign of a log-sum'],
  ['prefill.cpp', 'scale_high, tile.high[u]', 'scale_low, tile.high[u]', 'rows 4 to 7 take the scale of rows 0 to 3'],
  [
    'visibility.h',
    'std::clamp<int64_t>(p + call.right + 1, 0, length)',
    'std::clamp<int64_t>(p + call.right, 0, length)',
    'a row does not see itself',
  ],
  ['visibility.h', 'p - call.left, 0', 'p - call.left + 1, 0', 'a window is one key short'],
  [
    'prefill.cpp',
    'sum = select(visible, sum_with, sum);',
    'sum = sum_with;',
    'a hidden value that is not finite leaks',
  ],
  ['weights.cpp', 'static_cast<float>(call.num_heads)', 'static_cast<float>(call.H)', 'the mean of some heads'],
  ['merge.cpp', 'float total = std::exp(sink - max);', 'float total = 0;', 'a sink is left out'],
  [
    'rope.cpp',
    'x1 * cos[pair] - x2 * sin[pair]',
    'x1 * cos[pair] + x2 * sin[pair]',
    'the last pairs turn the other way',
  ],
  ['cache.cpp', '(time - call.ring_first) % call.ring_size', 'time % call.ring_size', 'a ring begins at row 0'],
  ['gemm.cpp', 'if (call.residual) y =', 'if (call.residual && call.packed) y =', 'a residual is lost in few rows'],
  ['norm.cpp', 'max == -INFINITY ? 0 : max', 'max', 'a row of -inf gives NaN'],
  [
    'decode-block-sums.h',
    'wasm_i32x4_sub(both, odd), offset)',
    'wasm_i32x4_sub(both, odd), odd)',
    'the offset of even channels stays in their sums',
  ],
  ['decode-block-scores.h', 'wasm_i16x8_splat(-kOffset)', 'wasm_i16x8_splat(0)', 'it stays in the scores'],
  ['math.h', '-0x1.555532p-2f', '-0x1.555032p-2f', 'tanh is off by 1e-5'],
];
const kMinimum = 12;
const kTree = join(projectRoot, 'build/mutants');
const kTargets = ['table', 'random', 'layers', 'rows', 'cache', 'math'].map((name) => `${name}_optimised`);

function copyTree() {
  rmSync(kTree, { recursive: true, force: true });
  mkdirSync(kTree, { recursive: true });
  for (const name of ['CMakeLists.txt', 'src', 'bindings', 'tests/host', 'bench/instructions', 'bench/limits']) {
    cpSync(join(projectRoot, name), join(kTree, name), { recursive: true });
  }
}

function buildTree() {
  const options = ['--build', join(kTree, 'host'), '-j', String(availableParallelism()), '--target', ...kTargets];
  capture('cmake', options);
}

/** @returns {string | null} the tests that failed; null when all passed */
function failures() {
  try {
    capture('ctest', ['--test-dir', join(kTree, 'host'), '-R', '_optimised$', '--timeout', '300']);
    return null;
  } catch (error) {
    const failed = [...error.message.matchAll(/^\s*\d+ - (\w+)_optimised \((\w+)/gm)].map(([, name, how]) =>
      how === 'Failed' ? name : `${name} (${how})`,
    );
    return failed.join(', ') || 'all';
  }
}

/** The file with its one line broken. */
function broken(text, [file, line, replacement]) {
  const count = text.split(line).length - 1;
  if (count !== 1) throw new SetupError(`${file} has "${line}" ${count} times instead of once: name the line anew`);
  return text.replace(line, () => replacement);
}

await main(() => {
  ensureHostPackages();
  configureHost();
  copyTree();
  const cmake = ['-S', kTree, '-B', join(kTree, 'host'), '-G', 'Unix Makefiles', '-DCMAKE_BUILD_TYPE=None'];
  const [compiler] = capture('grep', ['CMAKE_CXX_COMPILER:', join(hostFolder, 'CMakeCache.txt')]).match(/\/.*/);
  capture('cmake', [...cmake, `-DCMAKE_CXX_COMPILER=${compiler}`]);
  buildTree();
  capture(process.execPath, ['tests/host/export-cases.js', join(kTree, 'host/cases.bin')]);
  const before = failures();
  if (before) throw new SetupError(`tests fail without any change: ${before}`);
  const survivors = [];
  for (const mutant of kMutants) {
    const [file, , , what] = mutant;
    const path = join(kTree, 'src', file);
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, broken(text, mutant));
    buildTree();
    const noticed = failures();
    writeFileSync(path, text);
    say(`${file}, ${what}: ${noticed ? `noticed by ${noticed}` : 'NOT NOTICED'}`);
    if (!noticed) survivors.push(what);
  }
  say(`${kMutants.length - survivors.length} of ${kMutants.length} broken lines were noticed`);
  if (kMutants.length < kMinimum || survivors.length) throw new SetupError(`not noticed: ${survivors.join('; ')}`);
});
