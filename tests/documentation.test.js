// The examples in the documentation of types run as they stand there. A line `expression; // → value` holds what it says.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, describe, test } from 'node:test';
import { promisify } from 'node:util';
import * as main from 'attention-wasm';
import * as onnx from 'attention-wasm/onnx';
import { namesOf } from './support/methods.js';
import { weightsFor } from './support/models.js';
import { safetensorsOf } from './support/safetensors.js';

const root = resolve(import.meta.dirname, '..');
const folder = join(root, 'build', `documentation-${process.pid}`); // inside the package, so that its own name leads to it
mkdirSync(folder, { recursive: true });
after(() => rmSync(folder, { recursive: true }));

/** Public files: where the imports of their examples come from. */
const kEntries = {
  'index.js': "import { load } from 'attention-wasm';",
  'attention.js': "import { load } from 'attention-wasm';",
  'building-blocks.js': "import { load } from 'attention-wasm';",
  'rope-frequencies.js': "import { ropeFrequencies } from 'attention-wasm';",
  'safetensors.js':
    "import { readFile } from 'node:fs/promises';\nimport { readSafetensors } from 'attention-wasm/safetensors';",
  'transformer.js': `import { readFile } from 'node:fs/promises';\nimport { Transformer } from 'attention-wasm/transformer';
    const [config, weights] = [JSON.parse(await readFile('config.json', 'utf8')), await readFile('weights.safetensors')];`,
  'worker.js': "import { load } from 'attention-wasm/worker';",
  'worker-transformer.js': `import { readFile } from 'node:fs/promises';\nimport { load, WorkerTransformer } from 'attention-wasm/worker';
    const [config, weights] = [JSON.parse(await readFile('config.json', 'utf8')), await readFile('weights.safetensors')];`,
  ...Object.fromEntries(
    readdirSync(join(root, 'bindings'))
      .filter((name) => name.startsWith('onnx-'))
      .map((name) => [name, `import { ${Object.keys(onnx).join(', ')} } from 'attention-wasm/onnx';`]),
  ),
};

/** [name of what is documented, example] of a file. */
function examplesOf(file) {
  const text = readFileSync(join(root, 'bindings', file), 'utf8');
  const found = [
    ...text.matchAll(
      /\/\*\*((?:(?!\*\/).)*?)@example\n(.*?)(?=^ *\* @|^ *\*\/)(?:(?!\*\/).)*?\*\/\n\s*(?:export )?(?:async )?(?:function|class)? ?(\w+)/gms,
    ),
  ];
  return found.map(([, , lines, name]) => [name, lines.replaceAll(/^ *\* ?/gm, '')]);
}

/** Lines with an arrow become checks. */
function withChecks(code) {
  return code.replaceAll(/^(.*); \/\/ → ([^\n]*?)(?:, [a-z][^\n'"\]]*)?$/gm, 'check(($1), ($2));');
}

const kPrelude = `import assert from 'node:assert/strict';
const check = (got, want) => { assert.deepEqual(structuredClone(got), want); ++checks; };
let checks = 0;
`;

async function run(name, file, code) {
  const own = /await load\(/.test(code)
    ? ''
    : "const attention = await (await import('attention-wasm')).load({ threads: 1 });";
  const script = join(folder, `${file}-${name}.mjs`);
  const imports = kEntries[file].split('\n');
  writeFileSync(script, [...imports, kPrelude, own, withChecks(code), 'console.log(checks);'].join('\n'));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [script], { cwd: folder, timeout: 60_000 });
  assert.equal(stderr, '');
  assert(Number(stdout) > 0, `the example of ${name} checks nothing`);
}

describe('examples in the documentation', () => {
  const config = {
    ...{ model_type: 'llama', vocab_size: 16, hidden_size: 16, intermediate_size: 16, num_hidden_layers: 1 },
    ...{ num_attention_heads: 2, num_key_value_heads: 1, max_position_embeddings: 64, tie_word_embeddings: true },
    eos_token_id: null,
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'weights.safetensors'), safetensorsOf(weightsFor(config)));
  const norm = { data: new Float32Array(4), shape: [4] };
  writeFileSync(join(folder, 'model.safetensors'), safetensorsOf({ 'norm.weight': norm }));

  for (const file of Object.keys(kEntries)) {
    for (const [name, code] of examplesOf(file)) test(`${file}: ${name}`, () => run(name, file, code));
  }

  test('every function has one', () => {
    const documented = Object.keys(kEntries).flatMap((file) => examplesOf(file).map(([name]) => name));
    const methods = namesOf(main.Attention.prototype);
    const without = ['constructor', 'dispose', 'memory', 'device'];
    const public_ = [
      ...methods.filter((name) => !without.includes(name)),
      'load',
      'ropeFrequencies',
      ...Object.keys(onnx),
    ];
    assert.deepEqual(
      [...public_, 'readSafetensors', 'Transformer', 'WorkerTransformer'].filter((name) => !documented.includes(name)),
      [],
    );
  });
});
