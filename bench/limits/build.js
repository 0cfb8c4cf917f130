// Compiles limits.cpp with the project's tool chain, when it has changed.
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { capture, projectRoot, say } from '../../tools/machine.js';
import { ensureEmscripten } from '../../tools/toolchain.js';

const kSource = join(import.meta.dirname, 'limits.cpp');
const folder = join(projectRoot, 'build/bench');

/** The module of a build, `baseline` or `relaxed`. */
export const moduleFile = (name) => join(folder, `limits.${name}.wasm`);

export function buildLimits() {
  const isOld = (name) =>
    !existsSync(moduleFile(name)) || statSync(moduleFile(name)).mtimeMs < statSync(kSource).mtimeMs;
  const builds = Object.entries({ baseline: [], relaxed: ['-mrelaxed-simd'] }).filter(([name]) => isOld(name));
  if (builds.length === 0) return;
  say('building the loops that find the limits of the machine');
  const { root, env } = ensureEmscripten();
  mkdirSync(folder, { recursive: true });
  for (const [name, options] of builds) {
    capture(
      join(root, 'em++'),
      [
        ...[kSource, '-o', moduleFile(name), '-O3', '-msimd128', ...options],
        ...['--no-entry', '-sSTANDALONE_WASM', '-sALLOW_MEMORY_GROWTH', '-sMAXIMUM_MEMORY=4GB'],
        '-sEXPORTED_FUNCTIONS=_prepare,_matrix_product,_matrix_product_flops,_read',
        '-sBINARYEN_EXTRA_PASSES=--one-caller-inline-max-function-size=1', // leaves each loop a function of its own
      ],
      { env },
    );
  }
}
