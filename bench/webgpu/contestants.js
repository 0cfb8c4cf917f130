// In the page, or in Node with Dawn: what computes a workload on the GPU. Tensors are on the GPU before a run and stay there after it.
//
// A contestant: `run()` starts one computation; `done()` resolves when all that was started has ended; `output()` reads
// the result; `gpu()` is the time of one run by the device's own clock in ms, or null.
import { load } from '../../dist/index.js';
import { variants } from '../onnx/attention-models.js';
import { timedDevice } from './clock.js';

const kOrt = new URL('../node_modules/onnxruntime-web/dist/ort.webgpu.bundle.min.mjs', import.meta.url).href;

export async function ours(workload, inputs) {
  const timer = await timedDevice();
  const attention = await load({ backend: 'webgpu', device: timer.device });
  const made = await (workload.kind === 'layer' ? layer : resident)(attention, workload, inputs);
  return {
    run: made.run,
    done: () => timer.device.queue.onSubmittedWorkDone(),
    output: async () => ({ data: await made.out.read(), layout: made.layout }),
    gpu: () => timer.time(made.run),
    dispose() {
      attention.dispose();
      timer.device.destroy();
    },
  };
}

async function resident(attention, { H, Hkv, Tq, Tk, D, causal }, { q, k, v }) {
  const shapes = { q: [1, H, Tq, D], k: [1, Hkv, Tk, D], v: [1, Hkv, Tk, D] };
  const [queries, keys, values] = await Promise.all([
    attention.tensor(q, shapes.q),
    attention.tensor(k, shapes.k),
    attention.tensor(v, shapes.v),
  ]);
  const out = await attention.tensor(null, shapes.q);
  const options = { isCausal: causal ? 'bottom-right' : false, out };
  return { run: () => attention.scaledDotProductAttention(queries, keys, values, options), out, layout: 'bhtd' };
}

async function layer(attention, { E, H, Tq, causal: isCausal }, { x, wq, wk, wv, wo }) {
  const mha = await attention.multiHeadAttention({ dModel: E, numHeads: H, isCausal });
  const names = { q_proj: wq, k_proj: wk, v_proj: wv, out_proj: wo };
  const state = Object.entries(names).map(([name, data]) => [`${name}.weight`, { data, shape: [E, E] }]);
  await mha.loadStateDict(Object.fromEntries(state));
  const [input, out] = await Promise.all([attention.tensor(x, [1, Tq, E]), attention.tensor(null, [1, Tq, E])]);
  return { run: () => mha.forward(input, { out }), out, layout: 'bthd' };
}

/** The ways to say a workload to onnxruntime-web. */
export const ortWays = (workload) => Object.keys(variants(workload, {}));

export async function ort(workload, inputs, way) {
  const runtime = await import(kOrt);
  runtime.env.wasm.wasmPaths = kOrt.slice(0, kOrt.lastIndexOf('/') + 1);
  const { bytes, feeds, layout } = variants(workload, inputs)[way]();
  const session = await runtime.InferenceSession.create(bytes, {
    executionProviders: ['webgpu'],
    preferredOutputLocation: 'gpu-buffer',
    // An operator that the provider lacks would run on the processor, and its times would say nothing of the GPU.
    extra: { session: { disable_cpu_ep_fallback: '1' } },
    logSeverityLevel: 3,
  });
  const device = await runtime.env.webgpu.device;
  const buffers = [];
  const tensors = Object.fromEntries(
    Object.entries(feeds).map(([name, { type, data, dims }]) => {
      if (type !== 'float32') return [name, new runtime.Tensor(type, data, dims)];
      const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
      const gpuBuffer = device.createBuffer({ size: Math.ceil(data.byteLength / 16) * 16, usage });
      device.queue.writeBuffer(gpuBuffer, 0, data);
      buffers.push(gpuBuffer);
      return [name, runtime.Tensor.fromGpuBuffer(gpuBuffer, { dataType: type, dims })];
    }),
  );
  let last = null;
  const run = async () => {
    last?.dispose();
    ({ y: last } = await session.run(tensors, ['y']));
  };
  return {
    run,
    done: () => device.queue.onSubmittedWorkDone(),
    output: async () => ({ data: await last.getData(), layout }),
    gpu: () => null,
    async dispose() {
      last?.dispose();
      await session.release();
      for (const buffer of buffers) buffer.destroy();
    },
  };
}
