// scaledDotProductAttention on WebGPU against the float64 oracle, and against the wasm backend in the same page: the
// table of cases as far as a GPU on the processor gets through it in a minute.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { attentionCases } from '../support/cases.js';
import { assertClose } from '../support/tensors.js';
import { useGpuPage } from './webgpu.js';

const used = useGpuPage();

/** Beside the rounding of the output's type. */
const kTolerance = {
  float32: { absolute: 1e-4 },
  float16: { absolute: 1e-4, relative: 2 ** -11 },
  bfloat16: { absolute: 1e-4, relative: 2 ** -8 },
};
/** Cases that go to the page at once: their calls wait for the device together. */
const kAtOnce = 32;

/** @type {Map<string, { fused?: any, whole?: any, wasm?: any, error?: string }>} */
const answers = new Map();

async function runInPage(cases) {
  const calls = cases.map(({ name, q, k, v, options }) => ({ name, q, k, v, options }));
  return used.page.evaluate(async (list) => {
    const { load } = window.packageEntry;
    window.wasm ??= await load({ threads: 1 });
    return Promise.all(
      list.map(async ({ name, q, k, v, options }) => {
        const { needWeights = true, ...others } = options;
        try {
          const [fused, whole] = await Promise.all([
            window.attention.scaledDotProductAttention(q, k, v, { ...others, returnLse: true }),
            window.attention.scaledDotProductAttention(q, k, v, { ...others, needWeights }),
          ]);
          const wasm = window.wasm.scaledDotProductAttention(q, k, v, { ...others, needWeights, returnLse: true });
          return { name, fused, whole, wasm };
        } catch (error) {
          return { name, error: `${error.code}: ${error.message}` };
        }
      }),
    );
  }, calls);
}

describe('F-100: scaledDotProductAttention on webgpu gives what the oracle and wasm give', () => {
  before(async () => {
    for (let n = 0; n < attentionCases.length; n += kAtOnce) {
      for (const { name, ...answer } of await runInPage(attentionCases.slice(n, n + kAtOnce)))
        answers.set(name, answer);
    }
  });

  test('runs on a GPU device, with its name', async () => {
    const info = await used.page.evaluate(() => window.attention.info);
    assert.equal(info.backend, 'webgpu');
    assert.match(info.adapter, /swiftshader/);
  });

  for (const { name, outputType, ...call } of attentionCases) {
    test(name, () => {
      const { fused, whole, wasm, error } = answers.get(name);
      assert.equal(error, undefined);
      const { expected } = call;
      assertClose(fused.output, expected.output, { ...kTolerance[outputType], what: 'output' });
      assertClose(fused.lse, expected.lse, { absolute: 1e-4, relative: 1e-6, what: 'lse' });
      assertClose(whole.weights, expected.weights, { absolute: 1e-4, what: 'weights' });
      assertClose(whole.output, expected.output, { ...kTolerance[outputType], what: 'output beside weights' });
      const twice = { absolute: 1e-4, relative: 2 * (kTolerance[outputType].relative ?? 0) };
      assertClose(fused.output, wasm.output, { ...twice, what: 'output beside that of wasm' });
      assertClose(whole.weights, wasm.weights, { absolute: 1e-4, what: 'weights beside those of wasm' });
    });
  }
});
