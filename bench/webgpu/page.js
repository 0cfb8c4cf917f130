// In the page, or in Node with Dawn: makes contestants and runs them, as bench/webgpu.js tells it to.
import { inputs } from '../workloads.js';
import { timedDevice } from './clock.js';
import { ort, ortWays, ours } from './contestants.js';
import { measureLimits } from './limits.js';

/** @type {Map<string, Awaited<ReturnType<typeof ours>>>} */
const made = new Map();

export const commands = {
  ortWays: ({ workload }) => ortWays(workload),

  async adapter() {
    const adapter = await navigator.gpu?.requestAdapter({ powerPreference: 'high-performance' });
    if (!adapter) return null;
    const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info;
    return { name: [vendor, architecture, device, description].filter(Boolean).join(' '), isFallbackAdapter };
  },

  /** Multiply-adds and memory of the device. */
  async limits({ isSmall }) {
    const { device, least } = await timedDevice();
    const limits = await measureLimits(device, least, isSmall);
    device.destroy();
    return limits;
  },

  /** Makes a contestant, and returns what it computes. */
  async make({ id, way, workload }) {
    const contestant = await (id === 'ours' ? ours(workload, inputs(workload)) : ort(workload, inputs(workload), way));
    made.set(`${id} ${way}`, contestant);
    await contestant.run();
    const { data, layout } = await contestant.output();
    return { data: Float32Array.from(data), layout };
  },

  /** ms a run: `count` runs that follow each other, timed together. */
  async time({ id, way, count }) {
    const contestant = made.get(`${id} ${way}`);
    await contestant.done();
    const start = performance.now();
    // Ours run in order without being awaited; onnxruntime-web runs one at a time.
    if (id === 'ours') await Promise.all(Array.from({ length: count }, () => contestant.run()));
    else for (let n = 0; n < count; ++n) await contestant.run();
    await contestant.done();
    return { ms: (performance.now() - start) / count, gpu: await contestant.gpu() };
  },

  async drop({ id, way }) {
    await made.get(`${id} ${way}`)?.dispose();
    made.delete(`${id} ${way}`);
  },
};

globalThis.bench = commands;
