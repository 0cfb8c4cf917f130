// One workload: every contestant in a process of its own, checked first, then timed in rounds by turns.
import { exactRows, kTolerance, kTolerance8 } from './check.js';
import { interleaved, takesPart } from './contestants.js';
import { Process } from './process.js';
import { tensorBytes } from './workloads.js';

/** @typedef {import('./contestants.js').Contestant} Contestant @typedef {import('./workloads.js').Workload} Workload */

/**
 * How long to measure. A round gives every contestant `ms`, or one call; slow ones sit out later rounds once they have
 * used `mostMs`, after two rounds at the least.
 * @typedef {{ rounds: number, ms: number, mostMs: number, warmUp: { calls: number, ms: number, mostMs: number }, limitMs: number }} Effort
 */

/** @type {Effort} */
export const kFull = {
  ...{ rounds: 9, ms: 250, mostMs: 12_000, limitMs: 100 },
  warmUp: { calls: 4, ms: 600, mostMs: 4000 },
};

/** @type {Effort} */
export const kQuick = {
  ...{ rounds: 3, ms: 100, mostMs: 1000, limitMs: 20 },
  warmUp: { calls: 3, ms: 300, mostMs: 1500 },
};

/** Enough to tell which of several ways is the fastest. */
const kTrialMs = 150;
/** A way that is so many times slower than another before its warm-up gets no trial. */
const kHopeless = 5;

/**
 * @typedef {object} Result
 * @property {string} [failure] why there are no times
 * @property {string} [way] the operator that was the fastest
 * @property {number} [error] the largest difference from float64
 * @property {number[]} [times] ms a call
 * @property {number} [minimum] @property {number} [median]
 * @property {{ wasm: number, process: number }} [heap] bytes
 */

/**
 * @param {Workload} workload @param {Contestant[]} contestants @param {Effort} effort
 * @param {(text: string) => void} progress
 * @returns {Promise<{ results: Record<string, Result>, limits: Record<number, Record<string, number>> }>} limits by
 *   threads: GFLOP/s and GB/s, the best of all rounds
 */
export async function contest(workload, contestants, effort, progress) {
  const rows = exactRows(workload);
  const order = interleaved(contestants.filter((contestant) => takesPart(contestant, workload.id)));
  const counts = [...new Set(order.map(threadsOf))].sort();
  /** @type {Map<string, Entry>} */
  const entries = new Map();
  const limits = new Process(new URL('./limits/worker.js', import.meta.url));
  try {
    await limits.ask('open', {
      bytes: Math.max(tensorBytes(workload), 2 ** 25),
      counts,
      warmUp: { calls: 5, ms: 300 },
    });
    for (const contestant of order) {
      progress(`${workload.id}: preparing ${contestant.id}`);
      entries.set(contestant.id, await enter(workload, contestant, rows, effort));
    }
    const best = await runRounds(workload, entries, { limits, counts, effort, progress });
    for (const entry of entries.values()) await summarize(entry);
    return { results: Object.fromEntries([...entries].map(([id, { result }]) => [id, result])), limits: best };
  } finally {
    await Promise.all([limits, ...[...entries.values()].map(({ process }) => process)].map((one) => one?.close()));
  }
}

/** @param {Contestant} contestant */
const threadsOf = ({ options }) => /** @type {{ threads?: number }} */ (options).threads ?? 1;

/** @typedef {{ process: Process | null, result: Result, used: number }} Entry */

/**
 * Starts a contestant. One that knows several ways is started in each, and stays in the fastest.
 * @returns {Promise<Entry>}
 */
export async function enter(workload, contestant, rows, { warmUp }) {
  const ways = (await import(`./peers/${contestant.module}.js`)).ways?.(workload) ?? [undefined];
  let best = { process: null, result: {}, used: 0, trial: Number.POSITIVE_INFINITY };
  const failures = [];
  for (const way of ways) {
    const process = new Process(new URL('./worker.js', import.meta.url));
    const options = { ...contestant.options, way };
    const tolerance = contestant.eightBit ? kTolerance8 : kTolerance;
    const mostMs = kHopeless * best.trial;
    const terms = { module: contestant.module, options, workload, rows, tolerance, warmUp, mostMs };
    let loser = process;
    try {
      const { error, isRight, isSlow } = await process.ask('open', terms);
      if (!isRight) throw new Error(`wrong by ${error.toExponential(1)}`);
      const trial = isSlow ? mostMs : Math.min(...(await process.ask('measure', { ms: kTrialMs })));
      if (trial < best.trial) {
        loser = best.process;
        best = { process, result: { way, error, times: [] }, used: 0, trial };
      }
    } catch (error) {
      failures.push(way ? `${way}: ${error.message}` : error.message);
    }
    await loser?.close();
  }
  return best.process ? best : { process: null, result: { failure: failures.join('; ') }, used: 0 };
}

/** @returns the best rates by number of threads */
async function runRounds(workload, entries, { limits, counts, effort, progress }) {
  const best = {};
  for (let round = 0; round < effort.rounds; ++round) {
    progress(`${workload.id}: round ${round + 1} of ${effort.rounds}`);
    const rates = await limits.ask('measure', { counts, ms: effort.limitMs });
    for (const count of counts) best[count] = higher(best[count], rates[count]);
    for (const entry of entries.values()) {
      if (!entry.process || (round >= 2 && entry.used >= effort.mostMs)) continue;
      await runTurn(entry, effort.ms);
    }
  }
  return best;
}

function higher(before = {}, now) {
  return Object.fromEntries(Object.entries(now).map(([name, rate]) => [name, Math.max(rate, before[name] ?? 0)]));
}

async function runTurn(entry, ms) {
  const start = performance.now();
  try {
    entry.result.times.push(...(await entry.process.ask('measure', { ms })));
  } catch (error) {
    await fail(entry, error);
  }
  entry.used += performance.now() - start;
}

async function fail(entry, error) {
  entry.result = { failure: error.message };
  await entry.process.close();
  entry.process = null;
}

async function summarize(entry) {
  if (!entry.process) return;
  try {
    entry.result.heap = await entry.process.ask('heap');
  } catch (error) {
    await fail(entry, error);
    return;
  }
  Object.assign(entry.result, minimumAndMedian(entry.result.times));
}

/** @param {number[]} times */
export function minimumAndMedian(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return { minimum: sorted[0], median };
}
