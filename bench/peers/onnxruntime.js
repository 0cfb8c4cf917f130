// What the two ONNX runtimes have in common.
import { variants } from '../onnx/attention-models.js';

export const waysOf = (workload) => Object.keys(variants(workload, {}));

/**
 * @param {typeof import('onnxruntime-common')} ort
 * @param {import('../workloads.js').Workload} workload
 * @param {string} way one of waysOf(workload)
 * @param {object} sessionOptions
 */
export async function createSession(ort, workload, inputs, way, sessionOptions) {
  const { bytes, feeds, layout } = variants(workload, inputs)[way]();
  const session = await ort.InferenceSession.create(bytes, { logSeverityLevel: 3, ...sessionOptions });
  const tensors = () =>
    Object.fromEntries(
      Object.entries(feeds).map(([name, { type, data, dims }]) => [name, new ort.Tensor(type, data, dims)]),
    );
  const kept = tensors();
  let output;
  return {
    async run() {
      // Only `y`: results that nobody asks for aren't copied out.
      const results = await session.run(workload.plain ? tensors() : kept, ['y']);
      output = results.y.data;
    },
    output: () => ({ data: output, layout }),
    dispose: () => session.release(),
  };
}
