// The trained model of the page, as its files are.
import { readFileSync } from 'node:fs';

const read = (name) => readFileSync(new URL(`../../web/model/${name}`, import.meta.url));
const json = (name) => JSON.parse(read(name).toString());

export const shipped = {
  config: json('config.json'),
  weights: read('model.safetensors'),
  golden: json('golden.json'),
  heads: json('heads.json'),
  tokenizer: json('tokenizer.json'),
  tokenizerConfig: json('tokenizer_config.json'),
};
