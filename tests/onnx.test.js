// The ONNX project's own node tests, read in place: beside the checkout, or where ATTENTION_WASM_ONNX_CASES says.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import * as onnx from 'attention-wasm/onnx';
import { builds, loadBuild } from './support/builds.js';
import { assertClose, decodeTensor } from './support/tensors.js';

const chosen = process.env.ATTENTION_WASM_ONNX_CASES;
const folder = chosen ? pathToFileURL(`${chosen}/`) : new URL('../../shared/conformance/onnx/', import.meta.url);
const cases = readCases();

function readCases() {
  if (!chosen && !existsSync(folder)) return [];
  const index = JSON.parse(readFileSync(new URL('index.json', folder), 'utf8'));
  return index.cases.map(({ file, op }) => ({ file, op, read: () => readCase(file) }));
}

function readCase(file) {
  const { attributes, inputs, outputs, tolerance } = JSON.parse(readFileSync(new URL(file, folder), 'utf8'));
  const named = (tensors) => Object.fromEntries(tensors.map((tensor) => [tensor.name, decodeTensor(tensor)]));
  return { attributes, inputs: named(inputs), outputs: named(outputs), tolerance };
}

/** The package's tensors carry a type only where the data leave it open. */
function plain({ data, shape, dtype }) {
  if (dtype === 'bool') return { data: Uint8Array.from(data, Number), shape };
  return { data, shape };
}

const plainInputs = (inputs) => Object.fromEntries(Object.entries(inputs).map(([name, x]) => [name, plain(x)]));

/** What of the package an operator needs, and how a case of it is run: `run` returns the outputs by name. */
const operators = {
  Attention: {
    run(attention, { attributes, inputs, outputs }) {
      const mode = outputs.qk_matmul_output && { qk_matmul_output_mode: attributes.qk_matmul_output_mode ?? 0 };
      return onnx.onnxAttention(attention, plainInputs(inputs), { ...attributes, ...mode });
    },
  },
  RotaryEmbedding: {
    run: (attention, { attributes, inputs }) => onnx.onnxRotaryEmbedding(attention, plainInputs(inputs), attributes),
  },
  FlexAttention: {
    unsupported({ attributes, inputs }) {
      const mods = ['score_mod', 'prob_mod'].filter((name) => attributes[name]);
      if (mods.length) return `${mods} is a graph; the package has no such hook`;
      return inputs.Q.dtype === 'float64' && 'float64 is not a type of the package';
    },
    run: (attention, { attributes, inputs }) => onnx.onnxAttention(attention, plainInputs(inputs), attributes),
  },
  Softmax: {
    run: (attention, { attributes, inputs }) => onnx.onnxSoftmax(attention, plainInputs(inputs), attributes),
  },
  RMSNormalization: {
    run: (attention, { attributes, inputs }) => onnx.onnxRMSNormalization(attention, plainInputs(inputs), attributes),
  },
  TensorScatter: {
    run: (attention, { attributes, inputs }) => onnx.onnxTensorScatter(attention, plainInputs(inputs), attributes),
  },
  LinearAttention: { needs: (attention) => attention.linearAttention },
};

/** Why a case can't be run, or a falsy value. */
function reasonToLeaveOut(attention, { op, read }) {
  const operator = operators[op];
  if (operator.needs && !(operator.needs(attention) && operator.run)) return 'the operator is not in the package';
  return operator.unsupported?.(read());
}

/** ONNX's tolerance; for float16, whose reference rounds at each step, two units in the last place besides. */
function assertOutputs(got, { outputs, tolerance: { atol, rtol } }) {
  for (const [name, want] of Object.entries(outputs)) {
    assert.ok(got[name], `there is no output ${name}`);
    const half = want.dtype === 'float16' ? 2 * 2 ** -10 : 0;
    const tiny = want.dtype === 'float16' ? 2 * 2 ** -24 : 0;
    assertClose(got[name], want, { absolute: atol + tiny, relative: rtol + half, what: name });
  }
}

const absent =
  cases.length === 0 && `no ONNX cases at ${folder.pathname}; ATTENTION_WASM_ONNX_CASES names another place`;

test('the ONNX conformance cases are there', { skip: absent }, () => {
  for (const { op } of cases) assert.ok(operators[op], `the cases hold an unknown operator ${op}`);
});

for (const build of builds()) {
  const attention = await loadBuild(build);
  describe(`ONNX conformance, ${build}`, { skip: absent }, () => {
    const ran = {};
    const leftOut = [];
    for (const entry of cases) {
      const reason = reasonToLeaveOut(attention, entry);
      if (reason) {
        leftOut.push(`${entry.file} (${entry.op}): ${reason}`);
        continue;
      }
      ran[entry.op] = (ran[entry.op] ?? 0) + 1;
      test(entry.file, async () => {
        const given = entry.read();
        assertOutputs(await operators[entry.op].run(attention, given), given);
      });
    }
    test('the cases that ran, and those left out', (t) => {
      const count = Object.values(ran).reduce((a, b) => a + b, 0);
      t.diagnostic(`${build}: ran ${count} of ${cases.length} ONNX cases (${JSON.stringify(ran)})`);
      for (const line of leftOut) t.diagnostic(`left out: ${line}`);
      assert.equal(count + leftOut.length, cases.length);
      for (const op of ['Attention', 'RotaryEmbedding', 'RMSNormalization', 'Softmax', 'TensorScatter']) {
        assert.equal(ran[op], cases.filter((entry) => entry.op === op).length, `every ${op} case runs`);
      }
    });
  });
}
