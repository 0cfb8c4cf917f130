// The process that finds the limits of the machine: on one core, and on two at the same time.
import { Worker } from 'node:worker_threads';
import { serve } from '../serve.js';

/** @type {Worker[]} */
let threads = [];

/** @returns the sum of the rates of the first `count` threads, all running the loop at once */
async function rate(name, count, ms) {
  const answers = threads.slice(0, count).map((thread) => {
    const answer = new Promise((resolve, reject) => thread.once('message', resolve).once('error', reject));
    thread.postMessage({ name, ms });
    return answer.finally(() => thread.removeAllListeners('error'));
  });
  return (await Promise.all(answers)).reduce((sum, value) => sum + value, 0);
}

async function measure({ counts, ms }) {
  const rates = {};
  for (const count of counts) {
    rates[count] = {};
    for (const name of ['mulAdd', 'madd', 'read']) rates[count][name] = await rate(name, count, ms);
  }
  return rates;
}

serve({
  async open({ bytes, counts, warmUp }) {
    const file = new URL('./thread.js', import.meta.url);
    threads = Array.from({ length: Math.max(...counts) }, () => new Worker(file, { workerData: { bytes } }));
    // Several calls: what is compiled better meanwhile serves later ones.
    for (let n = 0; n < warmUp.calls; ++n) await measure({ counts, ms: warmUp.ms / warmUp.calls });
  },
  measure,
});
