// What the page paints first is what it computes afterwards.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { makeExample } from '../tools/example.js';
import { assertClose } from './support/tensors.js';

test('the stored example is the model’s: `node tools/example.js` writes it', async () => {
  const stored = JSON.parse(readFileSync(new URL('../web/model/example.json', import.meta.url), 'utf8'));
  const { weights, scores, candidates, ...rest } = await makeExample();
  const { weights: storedWeights, scores: storedScores, candidates: storedCandidates, ...storedRest } = stored;
  assert.deepEqual(storedRest, rest);
  assertClose(storedWeights, weights, { absolute: 2 });
  assert.deepEqual(Object.keys(storedScores), Object.keys(scores));
  for (const [kind, values] of Object.entries(scores))
    assertClose(storedScores[kind].flat(), values.flat(), { absolute: 2e-3 });
  const probabilities = (list) => list.map(({ after }) => after);
  assertClose(probabilities(storedCandidates), probabilities(candidates), { absolute: 2e-3 });
  assert.deepEqual(
    storedCandidates.slice(0, 3).map(({ token }) => token),
    ['·st', '·t', ','],
  );
});
