// The goals, each with what this run measured for it.
import { contestants } from './contestants.js';
import { besides, fraction } from './measures.js';
import { workloads } from './workloads.js';

const kOurs = Object.fromEntries(contestants.filter(({ ours }) => ours).map((one) => [one.id, one]));
const kSingle = ['ours-baseline', 'ours-relaxed'];
const kDouble = ['ours-baseline-2t', 'ours-relaxed-2t'];

/** @typedef {{ goal: string, wanted: string, got: string, met: boolean | null }} Goal `met`: null where it wasn't measured */

/** @param {Record<string, { results: Record<string, any>, limits: any }>} measured by workload @returns {Goal[]} */
export function goals(measured) {
  const time = (id, contestant) => measured[id]?.results[contestant]?.minimum;
  const best = (id, ids = kSingle) => smallest(ids.map((contestant) => time(id, contestant)));
  const faster = (id, than) => divide(time(id, than), best(id));
  const part = (id, contestant) => {
    const { results, limits } = measured[id] ?? {};
    return results?.[contestant] && fraction(workloads[id], limits, kOurs[contestant], results[contestant]);
  };
  const bestPart = (id) => largest(kSingle.map((contestant) => part(id, contestant)));
  const times = (wanted, got) => atLeast(wanted, got, (value) => `${value.toFixed(2)}×`);
  const percent = (wanted, got) => atLeast(wanted, got, (value) => `${Math.round(value * 100)} %`);
  const list = [];
  const add = (goal, outcome) => {
    if (measured[goal.slice(0, 2)]) list.push({ goal, ...outcome }); // of the workloads that were run
  };

  for (const [id, ratio] of Object.entries({ P1: 4.3, P2: 3.9, P3: 1.8, P4: 3.6 })) {
    add(`${id}, best build: part of the product loop's rate`, percent(0.93, bestPart(id)));
    add(`${id}, baseline: part of that loop without relaxed_madd`, percent(0.85, part(id, 'ours-baseline')));
    add(`${id}: times as fast as onnxruntime-web`, times(ratio, faster(id, 'ort-web')));
  }
  add('P1: level with the native runtime', times(1, faster('P1', 'ort-node')));
  for (const [id, ratio] of Object.entries({ D1: 4.8, D2: 3.8 })) {
    add(`${id}: part of the nearer limit`, percent(0.85, bestPart(id)));
    add(`${id}: times as fast as onnxruntime-web`, times(ratio, faster(id, 'ort-web')));
    add(`${id}: times as fast as the native runtime`, times(2, faster(id, 'ort-node')));
  }
  add("M1: part of the product loop's rate", percent(0.9, bestPart('M1')));
  add('M1: times as fast as onnxruntime-web', times(1.9, faster('M1', 'ort-web')));
  add('S1: times as fast as onnxruntime-web', times(5, faster('S1', 'ort-web')));
  add('S1: times as fast as the native runtime', times(2, faster('S1', 'ort-node')));
  add(
    'S0: first result',
    atMost(25, best('S0'), (ms) => `${ms.toFixed(1)} ms`),
  );
  const download = smallest(kSingle.map((contestant) => measured.S0?.results[contestant]?.download));
  add(
    'S0: download',
    atMost(60_000, download, (bytes) => `${(bytes / 1000).toFixed(1)} kB`),
  );
  for (const id of ['P2', 'P4', 'M1'])
    add(`${id}: two threads against one`, times(1.85, divide(best(id), best(id, kDouble))));
  for (const [id, ratio] of Object.entries({ P2: 1.3, P4: 1.3, D1: 1.3, D2: 2.5 })) {
    add(`${id}: 8-bit against float32`, times(ratio, divide(best(id), time(id, 'ours-int8'))));
  }
  const heaps = kSingle
    .map((contestant) => measured.P2?.results[contestant])
    .map((result) => result && besides(workloads.P2, result));
  add(
    'P2: memory besides inputs and output',
    atMost(2 * 2 ** 20, largest(heaps), (bytes) => `${(bytes / 2 ** 20).toFixed(2)} MiB`),
  );
  return list;
}

const known = (values) => values.filter((value) => typeof value === 'number');
const smallest = (values) => (known(values).length ? Math.min(...known(values)) : undefined);
const largest = (values) => (known(values).length ? Math.max(...known(values)) : undefined);
const divide = (a, b) => (a === undefined || b === undefined ? undefined : a / b);

function atLeast(wanted, got, show) {
  return outcome(`≥ ${show(wanted)}`, got, show, got >= wanted);
}

function atMost(wanted, got, show) {
  return outcome(`≤ ${show(wanted)}`, got, show, got <= wanted);
}

function outcome(wanted, got, show, met) {
  if (typeof got !== 'number') return { wanted, got: 'not measured', met: null };
  return { wanted, got: show(got), met };
}
