// Markdown of a run: the table for the README, the details, the goals.
import { contestants } from './contestants.js';
import { goals } from './goals.js';
import { besides, fraction, rate } from './measures.js';
import { workloads } from './workloads.js';

/** @typedef {{ machine: Record<string, any>, quick: boolean, workloads: Record<string, { results: Record<string, any>, limits?: any }> }} Run */

/** @param {Run} run */
export function report(run) {
  return [
    `${about(run)}\n`,
    '## Times',
    overview(run),
    losses(run),
    '## Details',
    details(run),
    '## Goals',
    table(
      ['goal', 'wanted', 'measured', ''],
      goals(run.workloads).map(({ goal, wanted, got, met }) => [
        goal,
        wanted,
        got,
        met === null ? '–' : met ? 'met' : 'missed',
      ]),
    ),
  ].join('\n\n');
}

function about({ machine, quick }) {
  const { processor, cores, system, node, v8, load } = machine;
  const notes = [
    `${processor}, ${cores} cores, ${system}, Node ${node} (V8 ${v8}); load ${load.toFixed(1)} at the start.`,
  ];
  if (load > 0.5)
    notes.push('**The machine was busy with other things: these figures are for a look, not for publication.**');
  if (quick) notes.push('**A quick run: few samples.**');
  return notes.join('\n');
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map((_, n) => (n === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n');
}

const taking = (run) => contestants.filter(({ id }) => Object.values(run.workloads).some(({ results }) => results[id]));

/** One row a workload, the minimum of the calls. */
function overview(run) {
  const columns = taking(run);
  const rows = Object.entries(run.workloads).map(([id, { results }]) => [
    id === 'S0' ? 'S0: first result in a new process' : `${id}: ${workloads[id].title}`,
    ...columns.map((contestant) => cell(id, results[contestant.id])),
  ]);
  const name = ({ label, ours }) => (ours ? `attention-wasm ${label}` : label);
  return [
    table(['', ...columns.map(name)], rows),
    'Milliseconds, the minimum of all calls; in brackets GFLOP/s, counted alike for all. Each is compared with float64 first.',
    'onnxruntime copies inputs and output on every call; the others keep them in their memory (S1: arrays in and out).',
  ].join('\n\n');
}

function cell(id, result) {
  if (!result) return '';
  if (result.failure) return 'failed';
  const ms = digits(result.minimum);
  if (id === 'S0') return result.download ? `${ms} (${kilobytes(result.download)})` : ms;
  return `${ms} (${digits(rate(workloads[id], result.minimum))})`;
}

/** Three significant digits. */
const digits = (value) => (value >= 100 ? value.toFixed(0) : value.toPrecision(value < 0.1 ? 2 : 3));
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(0)} kB`;
const mebibytes = (bytes) => (bytes === undefined ? '' : (bytes / 2 ** 20).toFixed(1));

/** Where another runtime is faster than our best with as many threads. */
function losses(run) {
  const lines = [];
  for (const [id, { results }] of Object.entries(run.workloads))
    for (const threads of [1, 2]) {
      const timed = contestants.filter(
        (contestant) => (contestant.options.threads ?? 1) === threads && results[contestant.id]?.minimum !== undefined,
      );
      const time = (contestant) => results[contestant.id].minimum;
      const mine = Math.min(...timed.filter(({ ours, eightBit }) => ours && !eightBit).map(time));
      for (const contestant of timed.filter(({ ours }) => !ours)) {
        const ratio = mine / time(contestant);
        if (ratio > 1 && Number.isFinite(ratio)) {
          lines.push(`- ${id}: ${contestant.label} is ${ratio.toFixed(2)} times as fast.`);
        }
      }
    }
  return lines.length ? `Where another runtime wins:\n\n${lines.join('\n')}` : 'No other runtime wins here.';
}

function details(run) {
  const rows = [];
  for (const [id, { results, limits }] of Object.entries(run.workloads))
    for (const contestant of contestants) {
      const result = results[contestant.id];
      if (result)
        rows.push([
          id,
          contestant.label,
          ...(result.failure ? [`failed: ${result.failure}`] : detail(id, contestant, result, limits)),
        ]);
    }
  const limits = Object.entries(run.workloads)
    .filter(([, measured]) => measured.limits)
    .map(([id, measured]) => [id, ...limitCells(measured.limits[1]), ...limitCells(measured.limits[2])]);
  return [
    table(
      [
        '',
        '',
        'minimum, ms',
        'median, ms',
        'GFLOP/s',
        'of the limit',
        'heap besides tensors, MiB',
        'error',
        'operator',
      ],
      rows,
    ),
    table(
      [
        'limits',
        'mul + add, GFLOP/s',
        'relaxed_madd, GFLOP/s',
        'read, GB/s',
        '2 threads: mul + add',
        'relaxed_madd',
        'read',
      ],
      limits,
    ),
  ].join('\n\n');
}

function detail(id, contestant, result, limits) {
  const { minimum, median, way = '', error } = result;
  if (id === 'S0') return [digits(minimum), digits(median)];
  const workload = workloads[id];
  const part = fraction(workload, limits, contestant, result);
  return [
    digits(minimum),
    digits(median),
    digits(rate(workload, minimum)),
    part === null ? '' : `${Math.round(part * 100)} %`,
    contestant.eightBit ? '' : mebibytes(besides(workload, result)),
    error.toExponential(1),
    way,
  ];
}

const limitCells = (limits) =>
  limits ? ['mulAdd', 'madd', 'read'].map((name) => limits[name].toFixed(1)) : ['', '', ''];
