// The process of one contestant: answers the commands of contest.js, one after the other.

import { largestError } from './check.js';
import { heapUse } from './heap.js'; // before any library
import { serve } from './serve.js';
import { inputs } from './workloads.js';

/**
 * What every file of peers/ makes of a workload.
 * @typedef {object} Peer
 * @property {() => void | Promise<void>} run one call, its result included
 * @property {() => { data: Float32Array, layout: 'bhtd' | 'bthd' }} output what the last call gave
 * @property {() => void | Promise<void>} dispose
 */

const kSample = 2; // ms: shorter calls are timed several at once
let peer;
let batch = 1;

const commands = {
  /**
   * Sets up, compares one result with the exact rows, and runs until the engine has optimised the code; not if the
   * second call takes longer than `mostMs`.
   */
  async open({ module, options, workload, rows, tolerance, warmUp, mostMs }) {
    const { create } = await import(`./peers/${module}.js`);
    peer = await create(workload, inputs(workload), options);
    await call();
    const error = largestError(workload, peer.output(), rows);
    if (!(error <= tolerance)) return { error, isRight: false };
    if ((await call()) > mostMs) return { error, isRight: true, isSlow: true };
    batch = Math.ceil(kSample / (await warm(warmUp)));
    return { error, isRight: true };
  },

  /** Times calls for `ms`: milliseconds per call, one number a sample. */
  async measure({ ms }) {
    const times = [];
    const end = performance.now() + ms;
    do {
      const start = performance.now();
      for (let n = 0; n < batch; ++n) {
        const pending = peer.run();
        if (pending) await pending;
      }
      times.push((performance.now() - start) / batch);
    } while (performance.now() < end);
    return times;
  },

  heap: heapUse,
};

async function call() {
  const start = performance.now();
  await peer.run();
  return performance.now() - start;
}

/** V8 compiles wasm again, better, once it has run for a while; the new code serves later calls. @returns ms of the last */
async function warm({ calls, ms, mostMs }) {
  const start = performance.now();
  let last = 0;
  for (let n = 0; n < calls || performance.now() - start < ms; ++n) {
    last = await call();
    await new Promise(setImmediate); // lets what was compiled meanwhile take over
    if (performance.now() - start > mostMs) break;
  }
  return last;
}

serve(commands);
