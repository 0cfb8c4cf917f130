// npm run test:matrix: the packed package in an empty folder, in every bundler, Node and browser of tests/matrix, and
// that two builds are the same. Takes minutes; `npm run test:matrix -- bundlers` runs the files of that name alone.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildPackage, ensurePackages } from './build.js';
import { capture, main, projectRoot, run, SetupError, say } from './machine.js';

const kFolder = join(projectRoot, 'tests/matrix');

/** The tarball that npm would publish. */
function pack() {
  const into = join(projectRoot, 'build/packed');
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  const [{ filename }] = JSON.parse(capture('npm', ['pack', '--json', '--pack-destination', into]));
  return join(into, filename);
}

function testFiles(words) {
  return readdirSync(kFolder)
    .filter((name) => name.endsWith('.test.js') && (words.length === 0 || words.some((word) => name.includes(word))))
    .map((name) => join(kFolder, name));
}

await main(async () => {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new SetupError('the matrix runs on Linux x64: tests/matrix/package.json has Node for that alone');
  }
  ensurePackages();
  await buildPackage();
  if (!existsSync(join(kFolder, 'node_modules/.package-lock.json'))) {
    say('installing the bundlers and Nodes of the matrix');
    run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: kFolder });
  }
  const env = { ...process.env, MATRIX_TARBALL: pack() };
  const files = testFiles(process.argv.slice(2));
  const options = ['--test', '--test-reporter=spec', '--test-concurrency=1', ...files];
  const { status } = spawnSync(process.execPath, options, { cwd: projectRoot, env, stdio: 'inherit' });
  process.exitCode = status ?? 1;
});
