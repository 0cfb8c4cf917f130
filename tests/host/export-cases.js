// Writes the table of attention cases for table_test.cpp: what a kernel is given for each, and the oracle's answer.
//
//   node tests/host/export-cases.js FILE
//
// The file, little-endian: the number of cases, then for each its name; its fields (name, float64); its arrays (name,
// bytes); the expected output, lse and weights (float64 values). Names, lists and arrays come after their length, 32
// bits.
import { closeSync, openSync, writeSync } from 'node:fs';
import { describeAttention } from '../../bindings/check-attention.js';
import { attentionCases } from '../support/cases.js';
import { RecordingBackend } from './recording-backend.js';

const backend = new RecordingBackend();
const context = { backend, fn: 'scaledDotProductAttention' };

function* chunksOf({ name, q, k, v, options, expected }) {
  // Everything that a call can give, at once.
  const { needWeights = true, ...others } = options;
  const call = describeAttention(context, q, k, v, { ...others, needWeights, returnLse: true });
  const { fields, arrays } = backend.record(call);
  yield* text(name);
  yield count(fields.size);
  for (const [field, value] of fields) yield* [...text(field), Float64Array.of(value)];
  yield count(arrays.size);
  for (const [array, bytes] of arrays) yield* [...text(array), count(bytes.length), bytes];
  for (const { data } of [expected.output, expected.lse, expected.weights]) yield* [count(data.length), data];
}

const count = (value) => Uint32Array.of(value);

function text(value) {
  const bytes = new TextEncoder().encode(value);
  return [count(bytes.length), bytes];
}

const file = openSync(process.argv[2], 'w');
writeSync(file, count(attentionCases.length));
for (const attentionCase of attentionCases) {
  for (const chunk of chunksOf(attentionCase)) writeSync(file, chunk);
}
closeSync(file);
