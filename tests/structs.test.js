// JavaScript's names of the fields of every struct are those of C++, in their order: what fills a struct relies on it.
import './support/sources.js';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { contextOf } from '../bindings/instances.js';
import { kStructBytes } from '../bindings/structs.js';
import { loadBuild } from './support/builds.js';
import { configs, weightsFor } from './support/models.js';
import { Transformer } from './support/package.js';
import { random } from './support/random.js';

/** The fields of each struct, as fields.h lists them. */
const tables = Object.fromEntries(
  [
    ...readFileSync(new URL('../bindings/fields.h', import.meta.url), 'utf8').matchAll(
      / k(\w+)\[\] = \{([^}]*)\{\}\};/g,
    ),
  ].map(([, name, list]) => [name, [...list.matchAll(/\bF\((\w+)\)/g)].map(([, field]) => field)]),
);

/** Functions of the module that take a struct, and which. */
const kStructs = {
  ...{ _attentionScratch: 'Attention', _attention: 'Attention', _append: 'Append', _merge: 'Merge', _rope: 'Rope' },
  ...{ _linearScratch: 'Linear', _linear: 'Linear', _embedding: 'Embedding', _norm: 'Norm' },
  _activation: 'Activation',
};

/** Notes the names that each function's struct was filled by. @returns {Record<string, Set<string>>} */
function watched(attention) {
  const { memory, module } = contextOf('test', attention).backend;
  const seen = Object.fromEntries(Object.keys(kStructs).map((name) => [name, new Set()]));
  const fill = memory.fill.bind(memory);
  let last = '';
  memory.fill = (fields) => {
    last = Object.keys(fields).join();
    return fill(fields);
  };
  for (const name of Object.keys(kStructs)) {
    const call = module[name];
    module[name] = (struct) => {
      assert.equal(struct, memory.struct);
      seen[name].add(last);
      return call(struct);
    };
  }
  return seen;
}

async function everyCall(attention) {
  const g = random(7);
  const x = g.tensor([1, 2, 5, 32]);
  const row = g.tensor([3, 32]);
  const { lse, output } = attention.scaledDotProductAttention(x, x, x, { returnLse: true, needWeights: true });
  attention.mergeAttention([{ output, lse }]);
  attention.rope(x, { style: 'half' });
  attention.linear(row, g.tensor([4, 32]));
  attention.rmsNorm(row);
  attention.silu(row);
  for (const dtype of ['float16', 'int8']) {
    const cache = attention.keyValueCache({ numKvHeads: 2, headDim: 32, capacity: 8, dtype });
    cache.append(x, x);
    cache.attend(x);
  }
  for (const config of Object.values(configs)) {
    const model = await Transformer.load(attention, { config, weights: weightsFor(config) });
    const cache = model.createCache({ capacity: 8 });
    model.forward([1, 2], { cache, capture: { attention: true } });
    model.forward([1, 2]);
    model.dispose();
  }
}

test('fields.h has the structs, none of which is too large', () => {
  assert.deepEqual(Object.keys(tables).sort(), [...new Set(Object.values(kStructs))].sort());
  for (const [name, fields] of Object.entries(tables)) {
    assert(fields.length > 4, name);
    assert(fields.length * 4 <= kStructBytes, name);
  }
});

for (const build of ['scalar', 'baseline']) {
  test(`every struct is filled by the names of its fields, in their order, ${build}`, async () => {
    const attention = await loadBuild(build);
    const seen = watched(attention);
    await everyCall(attention);
    for (const [name, struct] of Object.entries(kStructs)) {
      assert.deepEqual([...seen[name]], [tables[struct].join()], name);
    }
  });
}
