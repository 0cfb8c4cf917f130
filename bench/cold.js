// The process of one cold start: imports a contestant, loads it and makes one small call.
// Time runs from the first import on: how long Node itself takes to start is not counted.
import { serve } from './serve.js';
import { inputs } from './workloads.js';

serve({
  async start({ module, options, workload }) {
    const given = inputs(workload);
    const start = performance.now();
    const { create } = await import(`./peers/${module}.js`);
    const peer = await create(workload, given, options);
    await peer.run();
    return performance.now() - start;
  },
});
