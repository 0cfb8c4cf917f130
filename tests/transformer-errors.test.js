// Every rule of the decoder: its code and message, and that nothing stays behind and the model works on.

// biome-ignore assist/source/organizeImports: it comes first, because it counts what runs from then on
import { unreachedLines } from './support/coverage.js';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gpt2, kConfigs, kLoads, kWeights, llama, weights } from './refused/transformer.js';
import { kCalls } from './refused/transformer-calls.js';
import { builds, loadBuild } from './support/builds.js';
import { weightsFor } from './support/models.js';
import { AttentionError, Transformer } from './support/package.js';
import { assertSameBits } from './support/tensors.js';

function assertIs(error, code, message) {
  assert(error instanceof AttentionError, `${error?.stack}`);
  assert.equal(error.code, code, error.message);
  assert.match(error.message, message);
  assert.match(error.message, /^[\w.]+(: [\w.]+)?: .+, got /s);
}

for (const build of builds()) {
  describe(`what a decoder refuses, ${build}`, async () => {
    const attention = await loadBuild(build);
    const { allocated } = attention.memory;
    const refused = (name, options, code, message) =>
      test(name, async () => {
        const error = await Transformer.load(attention, options).then(assert.fail, (reason) => reason);
        assertIs(error, code, message);
        assert.equal(attention.memory.allocated, allocated);
      });

    for (const [name, config, ...rest] of kConfigs) refused(`config: ${name}`, { config, weights }, ...rest);
    for (const [name, given, ...rest] of kWeights)
      refused(`weights: ${name}`, { config: llama, weights: given }, ...rest);
    for (const [name, options, ...rest] of kLoads) refused(`load: ${name}`, options, ...rest);

    test('load: an instance that is none', async () => {
      for (const instance of [undefined, {}, 'x']) {
        const error = await Transformer.load(instance, { config: llama, weights }).then(assert.fail, (e) => e);
        assertIs(error, 'INVALID_OPTION', /Transformer.load: attention must be an instance that load\(\) returned/);
      }
    });

    for (const [name, call, code, message] of kCalls) {
      test(name, async () => {
        const model = await Transformer.load(attention, { config: llama, weights });
        const second = await Transformer.load(attention, { config: llama, weights });
        const caches = Object.fromEntries(['cache', 'gone'].map((each) => [each, model.createCache({ capacity: 5 })]));
        caches.other = second.createCache({ capacity: 5 });
        caches.gone.dispose();
        model.forward([4, 5], { cache: caches.cache });
        const want = model.forward([4, 5, 6]).logits;
        const held = attention.memory.allocated;
        assert.throws(
          () => call(model, caches),
          (error) => {
            assertIs(error, code, message);
            return true;
          },
        );
        assert.equal(attention.memory.allocated, held);
        assert.deepEqual(model.disabledHeads, []);
        assertSameBits(model.forward([4, 5, 6]).logits, want);
        assert.equal(caches.cache.length, 2);
        for (const cache of Object.values(caches)) cache.dispose();
        for (const each of [model, second]) each.dispose();
        assert.equal(attention.memory.allocated, allocated);
      });
    }

    test('learned positions run out', async () => {
      const model = await Transformer.load(attention, { config: gpt2, weights: weightsFor(gpt2) });
      const text = Array(50).fill(3);
      assert.equal(model.forward(text).logits.data.length, 35);
      const isFull = /tokens must fit into 50 positions, of which \d+ are taken, got/;
      assert.throws(
        () => model.forward([...text, 3]),
        (error) => {
          assertIs(error, 'CAPACITY', isFull);
          return true;
        },
      );
      assert.throws(
        () => model.createCache({ capacity: 51 }),
        /createCache: capacity must be an integer of 1 to 50, got 51/,
      );
      let count = 0;
      const stream = model.generate(text.slice(0, 47), { maxTokens: 9, onToken: () => ++count });
      const error = await stream
        .next()
        .then(async () => {
          for await (const _ of stream);
        })
        .then(assert.fail, (reason) => reason);
      assertIs(error, 'CAPACITY', isFull);
      assert.equal(count, 4);
      model.dispose();
      assert.equal(attention.memory.allocated, allocated);
    });
  });
}

test('every rule of the decoder is broken by a test here', async () => {
  const parts = ['cache', 'config', 'describe-forward', 'generate', 'pace', 'weights'].map(
    (name) => `/bindings/transformer/${name}.js`,
  );
  assert.deepEqual(
    await unreachedLines(['/bindings/transformer.js', '/bindings/instances.js', ...parts], /\brefuse\('/),
    [],
  );
});
