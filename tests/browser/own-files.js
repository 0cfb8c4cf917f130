// A folder of a random model, as a reader would pick it.
import { weightsFor } from '../support/models.js';
import { safetensorsOf } from '../support/safetensors.js';
import { shipped } from '../support/shipped-model.js';

/** The tokens of the tokenizer that comes with it. */
export const vocabulary = { vocab_size: 1024 };

export const json = (name, content) => ({
  name,
  mimeType: 'application/json',
  buffer: Buffer.from(JSON.stringify(content)),
});
export const binary = (name, bytes) => ({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(bytes) });

/** A folder of a random model, its weights in two files. */
export function folderOf(config) {
  const weights = weightsFor(config);
  const names = Object.keys(weights);
  const part = (from, to) =>
    safetensorsOf(Object.fromEntries(names.slice(from, to).map((name) => [name, weights[name]])));
  return {
    weights,
    files: [
      json('config.json', config),
      json('tokenizer.json', shipped.tokenizer),
      json('tokenizer_config.json', shipped.tokenizerConfig),
      binary('model-00001-of-00002.safetensors', part(0, 5)),
      binary('model-00002-of-00002.safetensors', part(5)),
    ],
  };
}
