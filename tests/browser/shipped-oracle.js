// The trained model of the page in float64.
import { readSafetensors } from 'attention-wasm/safetensors';
import { transformer } from '../support/oracle-transformer.js';
import { shipped } from '../support/shipped-model.js';
import { valuesOf } from '../support/tensors.js';

/** As numbers once: the forward reads them at every token. */
export const shippedWeights = Object.fromEntries(
  Object.entries(readSafetensors(shipped.weights)).map(([name, tensor]) => [
    name,
    { data: valuesOf(tensor), shape: tensor.shape },
  ]),
);

/** @param {number[]} ids @param {Parameters<typeof transformer>[3] & { layers?: number }} [options] `layers`: the first ones alone */
export function shippedOracle(ids, { layers, ...options } = {}) {
  const config = layers === undefined ? shipped.config : { ...shipped.config, num_hidden_layers: layers };
  return transformer(config, shippedWeights, ids, options);
}

/** @param {number[]} logits */
export function softmax(logits) {
  const most = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

/** What the matrix of the page shows, with null where there is no number. @param {import('playwright-core').Page} page */
export function matrixOf(page) {
  return page.evaluate(async () => {
    await window.attentionPage.settled();
    const { data, from, columns, rule, extreme } = window.attentionPage.matrix;
    const row = (i) => Array.from(data.subarray(i * columns, (i + 1) * columns), (x) => (Number.isNaN(x) ? null : x));
    return { rows: Array.from({ length: data.length / columns }, (_, i) => row(i)), from, columns, rule, extreme };
  });
}
