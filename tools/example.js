// Writes web/model/example.json: what the page paints before anything has loaded. To be run when the model, its default
// text or the probes change; a test says when that was forgotten.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'attention-wasm';
import { LanguageModel } from '../web/src/engine/language-model.js';
import { headScores } from '../web/src/engine/measure.js';
import { kAsTrained } from '../web/src/engine/rules.js';
import { allHeads, kDefaults } from '../web/src/state.js';
import { projectRoot } from './machine.js';

const kFolder = join(projectRoot, 'web/model');
const kFile = join(kFolder, 'example.json');

/** @returns {Promise<object>} the content of example.json */
export async function makeExample() {
  const json = (name) => JSON.parse(readFileSync(join(kFolder, name), 'utf8'));
  const files = {
    name: 'tiny-austen',
    ...{ config: json('config.json'), tokenizer: json('tokenizer.json') },
    tokenizerConfig: json('tokenizer_config.json'),
    weights: [readFileSync(join(kFolder, 'model.safetensors'))],
  };
  const attention = await load({ threads: 1 });
  const model = await LanguageModel.load(attention, files, () => {});
  const { tokens, ids, ...sizes } = await model.run({ text: kDefaults.text, added: [], off: [], change: kAsTrained });
  const T = tokens.length;
  const whole = allHeads(sizes).flatMap((head) => {
    const weights = model.sources.source.weights(head, 0);
    return tokens.flatMap((_, row) =>
      Array.from(weights.subarray(row * T, row * T + row + 1), (weight) => Math.round(10000 * weight)),
    );
  });
  const rounded = (value) => Math.round(value * 10000) / 10000;
  const scores = Object.fromEntries(
    Object.entries(await headScores(model)).map(([kind, layers]) => [kind, layers.map((layer) => layer.map(rounded))]),
  );
  const candidates = (await model.predict(T - 1)).map((each) => ({
    ...each,
    ...{ before: rounded(each.before), after: rounded(each.after) },
  }));
  return { tokens, ids, info: model.info, candidates, scores, weights: whole };
}

if (import.meta.filename === process.argv[1]) writeFileSync(kFile, `${JSON.stringify(await makeExample())}\n`);
