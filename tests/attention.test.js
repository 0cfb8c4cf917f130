// scaledDotProductAttention on every build against the float64 oracle, for the whole table of cases.
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { attentionCases } from './support/cases.js';
import { assertClose, assertUnchanged, remember } from './support/tensors.js';

/** Half a unit in the last place of the output's type, relative and (for subnormals) absolute. */
const kRounding = {
  float32: { absolute: 1e-5 },
  float16: { absolute: 1e-5, relative: 2 ** -11 },
  bfloat16: { absolute: 1e-5, relative: 2 ** -8 },
};

for (const build of builds()) {
  const attention = await loadBuild(build);
  describe(`scaledDotProductAttention, ${build}`, () => {
    for (const { name, q, k, v, options, outputType, ...call } of attentionCases) {
      test(name, async () => {
        const { expected } = call;
        const inputs = remember(q, k, v);
        const { needWeights = true, ...others } = options;
        const fused = await attention.scaledDotProductAttention(q, k, v, { ...others, returnLse: true });
        assertClose(fused.output, expected.output, { ...kRounding[outputType], what: 'output' });
        assertClose(fused.lse, expected.lse, { absolute: 1e-5, relative: 1e-6, what: 'lse' });
        const whole = await attention.scaledDotProductAttention(q, k, v, { ...others, needWeights });
        assertClose(whole.weights, expected.weights, { what: 'weights' });
        assertClose(whole.output, expected.output, { ...kRounding[outputType], what: 'output beside weights' });
        assertUnchanged(inputs);
      });
    }
  });
}
