// The memory that a pass of a decoder brings for its products, which depends on both sides of a weight.
import './support/sources.js';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { contextOf } from '../bindings/instances.js';
import { Transformer } from '../bindings/transformer.js';
import { builds, loadBuild } from './support/builds.js';
import { configs, weightsFor } from './support/models.js';
import { random } from './support/random.js';

/** Where `scratch` stands in the struct of a linear projection. */
const kScratch = 11;

const kModels = {
  'small weights': configs['LLaMA, all biases, untied, own head size'],
  'more than 4 MB for the vocabulary': { ...configs['LLaMA, grouped heads, tied'], vocab_size: 50_000 },
  'more than 4 MB within': { ...configs['GPT-2'], n_embd: 20, n_inner: 60_000, n_layer: 1, n_positions: 200 },
};

for (const build of builds()) {
  describe(`scratch memory of a decoder, ${build}`, async () => {
    for (const [name, config] of Object.entries(kModels)) {
      test(name, async () => {
        const attention = await loadBuild(build);
        const { module, memory } = contextOf('test', attention).backend;
        const model = await Transformer.load(attention, { config, weights: weightsFor(config) });
        const blocks = new Map();
        const { _allocate, _linear, _linearScratch } = module;
        let products = 0;
        module._allocate = (bytes) => {
          const at = _allocate(bytes);
          blocks.set(at, bytes);
          return at;
        };
        module._linear = (struct) => {
          const scratch = memory.heap.i32[(struct >>> 2) + kScratch] >>> 0;
          const end = scratch + _linearScratch(struct);
          assert(
            [...blocks].some(([at, bytes]) => at <= scratch && end <= at + bytes),
            `${end - scratch} bytes of scratch memory don't lie in a block of the pass`,
          );
          ++products;
          _linear(struct);
        };
        const generator = random(150);
        const tokens = Array.from({ length: 150 }, () => generator.integer(0, 34));
        for (const length of [1, 3, 9, 150]) {
          const { hidden } = model.forward(tokens.slice(0, length), { logits: 'all', capture: { hidden: true } });
          model.logitLens(hidden[0]);
        }
        assert(products >= 4 * (4 * model.info.layers + 2), `${products} products`);
        attention.dispose();
      });
    }
  });
}
