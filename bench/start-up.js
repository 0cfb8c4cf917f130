// S0: how long the first result takes in a new process, and how much a browser downloads for it.

import { minimumAndMedian } from './contest.js';
import { interleaved, takesPart } from './contestants.js';
import { downloads } from './downloads.js';
import { Process } from './process.js';
import { workloads } from './workloads.js';

/**
 * @param {import('./contestants.js').Contestant[]} contestants
 * @param {Record<string, string>} ways the operator that each was fastest with in S1, where it is known
 * @param {number} rounds
 * @returns {Promise<Record<string, import('./contest.js').Result & { download?: number }>>}
 */
export async function startUp(contestants, ways, rounds, progress) {
  const order = interleaved(contestants.filter(hasToLoad));
  /** @type {Record<string, any>} */
  const results = Object.fromEntries(order.map(({ id }) => [id, { times: [] }]));
  for (let round = 0; round < rounds; ++round) {
    progress(`S0: round ${round + 1} of ${rounds}`);
    for (const contestant of order) {
      const result = results[contestant.id];
      if (result.failure) continue;
      try {
        result.times.push(await once(contestant, ways[contestant.id]));
      } catch (error) {
        results[contestant.id] = { failure: error.message };
      }
    }
  }
  progress('S0: bundling');
  const bytes = await downloads(order.map(({ id }) => id));
  for (const [id, result] of Object.entries(results)) {
    if (result.failure) continue;
    Object.assign(result, minimumAndMedian(result.times), bytes[id] && { download: bytes[id] });
  }
  return results;
}

const hasToLoad = (contestant) => contestant.module !== 'plain-js' && takesPart(contestant, 'S0');

async function once({ module, options }, way) {
  const peer = await import(`./peers/${module}.js`);
  const known = way ?? peer.ways?.(workloads.S1)[0];
  const process = new Process(new URL('./cold.js', import.meta.url));
  try {
    return await process.ask('start', { module, options: { ...options, way: known }, workload: workloads.S1 });
  } finally {
    await process.close();
  }
}
