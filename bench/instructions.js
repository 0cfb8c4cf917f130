// npm run bench:instructions: how many instructions the kernels take, counted by callgrind on the host build. Other
// work on the machine doesn't change the counts, so that they show what time hides. They tell nothing about memory.
//
//   --save     keeps the counts; later runs print the change against them
//   --lines    where the instructions are, by function
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configureHost, ensureHostPackages, hostFolder } from '../tools/host.js';
import { capture, ensureSystemPackages, main, run } from '../tools/machine.js';
import { readOptions } from './command-line.js';

/** The calls of instructions/instructions.cpp, and their multiply-adds by four. */
const kCalls = {
  prefill: { title: 'causal, H=2 T=256 D=64', quads: 256 * 256 * 64 * (2 / 4) },
  grouped: { title: 'causal, H=4 Hkv=1 T=128 D=128', quads: 128 * 128 * 128 * (4 / 4) },
  decode: { title: 'Tk=2048 H=8 Hkv=2 D=128', quads: 2 * 2048 * 128 * (8 / 4) },
  linear: { title: '[128, 256] x [256, 256]', quads: (128 * 256 * 256) / 4 },
  small: { title: 'causal, H=4 T=32 D=16', quads: 32 * 32 * 16 * (4 / 4) },
};
const kSaved = join(import.meta.dirname, 'results/instructions.json');

function build() {
  ensureHostPackages();
  ensureSystemPackages({ valgrind: '/usr/bin/valgrind' }, 'counting instructions');
  configureHost();
  run('cmake', ['--build', hostFolder, '--target', 'instructions']);
}

/** @returns the count, and callgrind's file */
function count(name) {
  const file = join(hostFolder, `callgrind.${name}.out`);
  const program = join(hostFolder, 'bench/instructions/instructions');
  const options = ['--tool=callgrind', '--toggle-collect=measured', `--callgrind-out-file=${file}`, '--quiet'];
  capture('valgrind', [...options, program, name]);
  const total = Number(readFileSync(file, 'utf8').match(/^(?:totals|summary): (\d+)/m)?.[1]);
  if (!(total > 0)) throw new Error(`callgrind counted nothing for ${name}`);
  return { total, file };
}

/** The table of callgrind_annotate, without its preamble. */
function byFunction(file) {
  const text = capture('callgrind_annotate', ['--auto=no', '--threshold=95', file]);
  return text.slice(text.search(/^ *Ir .*file:function/m));
}

function line(name, { title, quads }, total, before) {
  return [
    `${name.padEnd(8)} ${title.padEnd(30)} ${total.toLocaleString('en').padStart(11)} instructions`,
    `${(total / quads).toFixed(2)} per four multiply-adds`,
    before ? `${((total / before - 1) * 100).toFixed(2)} % against the saved` : '',
  ].join('  ');
}

await main(() => {
  const { save, lines } = readOptions([], ['save', 'lines']);
  build();
  const saved = existsSync(kSaved) ? JSON.parse(readFileSync(kSaved, 'utf8')) : {};
  const counts = {};
  for (const [name, call] of Object.entries(kCalls)) {
    const { total, file } = count(name);
    counts[name] = total;
    console.log(line(name, call, total, saved[name]));
    if (lines) console.log(byFunction(file));
  }
  if (!save) return;
  mkdirSync(join(kSaved, '..'), { recursive: true });
  writeFileSync(kSaved, `${JSON.stringify(counts, null, 1)}\n`);
});
