// The multi-head attention module against PyTorch's, run in float64: outputs and attention weights, on every build.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { assertClose, assertUnchanged, decodeTensor, remember } from './support/tensors.js';

const folder = new URL('./golden/', import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith('.json'));

test('the reference files are there', () => {
  assert.equal(files.length, 6);
});

for (const build of builds()) {
  const attention = await loadBuild(build);
  describe(`multiHeadAttention against PyTorch, ${build}`, () => {
    for (const file of files) {
      test(file, () => {
        const golden = JSON.parse(readFileSync(new URL(file, folder), 'utf8'));
        const mha = attention.multiHeadAttention({
          dModel: golden.d_model,
          numHeads: golden.n_heads,
          isCausal: true,
          ...(golden.rope && { rope: { style: golden.rope, base: golden.rope_base } }),
        });
        const state = Object.entries(golden.state_dict).map(([name, tensor]) => [name, decodeTensor(tensor)]);
        mha.loadStateDict(Object.fromEntries(state));
        const x = decodeTensor(golden.x);
        const inputs = remember(x, ...state.map(([, tensor]) => tensor));
        const { output, weights } = mha.forward(x, { needWeights: true });
        assertClose(output, decodeTensor(golden.output), { absolute: 2e-5, what: 'output' });
        assertClose(weights, decodeTensor(golden.attention_weights), { absolute: 2e-5, what: 'weights' });
        const fused = mha.forward(x);
        assertClose(fused.output, decodeTensor(golden.output), { absolute: 2e-5, what: 'output without weights' });
        assertUnchanged(inputs);
        mha.dispose();
      });
    }
  });
}
