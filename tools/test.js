// npm test: the set-up of `npm start`, then every test and check. Ends with the totals, in the form of Node's own
// test runner; the exit code is non-zero when anything failed.
//
//   npm test -- --only node|relaxed|browser|host|lint      one part of it
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { buildPackage, ensurePackages } from './build.js';
import { ensureHostPackages } from './host.js';
import { ensureLintPackages } from './lint.js';
import { ensureSystemPackages, main, projectRoot, SetupError, say } from './machine.js';
import { buildPage } from './page.js';

const kHostTest = 'tests/checks/host.test.js';
const kRelaxedFlag = '--experimental-wasm-relaxed-simd';

/** The parts: what each needs before it runs, its test files, and Node's own flags for it. */
const kParts = {
  lint: {
    title: 'format, style, types, scripts',
    setUp: ensureLintPackages,
    files: () => testFiles('tests/checks').filter((file) => file !== kHostTest),
  },
  host: {
    title: 'kernels outside wasm, under sanitizers',
    setUp: ensureHostPackages,
    files: () => [kHostTest],
  },
  node: { title: 'the package in Node', files: packageTests },
  relaxed: { title: 'the package in Node with relaxed SIMD', files: packageTests, flags: relaxedFlags },
  browser: {
    title: 'the page in Chromium',
    setUp: async () => {
      ensureBrowser();
      await buildPage();
    },
    files: () => testFiles('tests/browser'),
    flags: () => ['--test-concurrency=2'], // these tests wait for the browser more than they compute
  },
};

/** Nodes that have relaxed SIMD without a flag no longer know the flag. */
function relaxedFlags() {
  return Number(process.versions.node.split('.')[0]) < 22 ? [kRelaxedFlag] : [];
}

function packageTests() {
  return testFiles('tests').filter((file) => !/^tests\/(browser|checks|firefox|matrix)\//.test(file));
}

function testFiles(folder) {
  return readdirSync(join(projectRoot, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.js'))
    .map((entry) => relative(projectRoot, join(entry.path, entry.name)))
    .sort();
}

function ensureBrowser() {
  if (process.env.CHROMIUM && existsSync(process.env.CHROMIUM)) return;
  ensureSystemPackages(
    {
      chromium: '/usr/bin/chromium',
      'fonts-dejavu-core': '/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf', // a bare machine has no font at all
    },
    'the tests of the page',
  );
}

function chosenParts() {
  const args = process.argv.slice(2);
  if (args.length === 0) return Object.keys(kParts);
  const [option, name] = args;
  if (option !== '--only' || args.length !== 2 || !Object.hasOwn(kParts, name)) {
    throw new SetupError(`usage: npm test [-- --only ${Object.keys(kParts).join('|')}]`);
  }
  return [name];
}

/** Runs one part with its output shown. @returns the totals that Node printed, by name, and whether all is well */
async function runPart({ title, files, flags = () => [] }) {
  say(title);
  const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {};
  const child = spawn(process.execPath, [...flags(), '--test', '--test-reporter=spec', ...files()], {
    cwd: projectRoot,
    env: { ...process.env, ...color },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    process.stdout.write(text);
    output += text;
  });
  const code = await new Promise((done) => child.on('close', done));
  const totals = {};
  for (const [, name, value] of output.matchAll(
    /ℹ (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)/g,
  ))
    totals[name] = Number(value);
  return { totals, good: code === 0 && totals.tests > 0 };
}

function printSum(results) {
  say('all parts together');
  const names = Object.keys(results.find(({ totals }) => totals.tests)?.totals ?? {});
  for (const name of names) {
    console.log(`ℹ ${name} ${results.reduce((sum, { totals }) => sum + (totals[name] ?? 0), 0)}`);
  }
}

await main(async () => {
  const parts = chosenParts().map((name) => kParts[name]);
  ensurePackages();
  await buildPackage();
  for (const { setUp } of parts) await setUp?.();
  const results = [];
  for (const part of parts) results.push(await runPart(part));
  if (parts.length > 1) printSum(results);
  if (!results.every(({ good }) => good)) process.exitCode = 1;
});
