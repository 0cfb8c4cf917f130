// The lesson as a test reads it, and the float64 oracle's tensors of the head in focus.
import { ropeFrequencies } from '../support/oracle-rope.js';
import { shipped } from '../support/shipped-model.js';
import { shippedOracle, shippedWeights } from './shipped-oracle.js';
import { stateOf } from './support.js';

/** A number as the page writes it. @param {string} text */
export const numberOf = (text) => Number(text.replaceAll('−', '-').replaceAll(',', ''));

/** Numbers of a text, in order. @param {string} text */
export const numbersIn = (text) => (text.replaceAll('−', '-').match(/-?\d+(\.\d+)?(e-?\d+)?/g) ?? []).map(Number);

/** Cells of the body of a table, row by row. @param {import('playwright-core').Locator} table */
export function cellsOf(table) {
  return table
    .locator('tbody tr')
    .evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.trim())));
}

/** Brings a section into sight, as a reader does who has scrolled to it. @param {import('playwright-core').Page} page @param {string} name */
export async function goTo(page, name) {
  await page.evaluate((part) => document.getElementById(`part-${part}`)?.scrollIntoView({ behavior: 'instant' }), name);
  await page
    .locator(`.lesson-progress button[aria-current][title="${name[0].toUpperCase()}${name.slice(1)}"]`)
    .waitFor();
  await restOf(page);
}

/** Waits until the instrument and the lesson show what was asked for last. @param {import('playwright-core').Page} page */
export const restOf = (page) =>
  page.evaluate(async () => {
    await window.attentionPage.settled();
    await window.attentionPage.lesson.settled();
  });

/** Waits until the lesson shows the tensors of the head that is chosen. @param {import('playwright-core').Page} page */
export async function settledLesson(page) {
  const { state } = await stateOf(page);
  await restOf(page);
  await page.getByText(`Head L${state.at[0]}·H${state.at[1]} on your text`).waitFor();
  return state;
}

/** [N, K] · x */
const times = ({ data, shape: [N, K] }, x) =>
  Array.from({ length: N }, (_, n) => x.reduce((sum, value, i) => sum + value * data[n * K + i], 0));

/**
 * All steps of one head in float64.
 * @param {number[]} ids @param {readonly [number, number]} at
 */
export function oracleSteps(ids, [layer, head]) {
  const { config } = shipped;
  const { hidden, projected, scores, attention } = shippedOracle(ids);
  const { q, k, v } = projected[layer];
  const D = config.head_dim;
  const group = Math.floor((head * config.num_key_value_heads) / config.num_attention_heads);
  const { frequencies } = ropeFrequencies({ rotaryDim: D, base: config.rope_theta });
  const norm = shippedWeights[`model.layers.${layer}.input_layernorm.weight`].data;
  const x = hidden[layer].map((token) => {
    const mean = token.reduce((sum, value) => sum + value * value, 0) / token.length;
    return token.map((value, i) => (value / Math.sqrt(mean + config.rms_norm_eps)) * norm[i]);
  });
  const turn = (vector, position) => {
    const turned = [...vector];
    frequencies.forEach((frequency, i) => {
      const [cos, sin] = [Math.cos(position * frequency), Math.sin(position * frequency)];
      turned[i] = vector[i] * cos - vector[i + D / 2] * sin;
      turned[i + D / 2] = vector[i + D / 2] * cos + vector[i] * sin;
    });
    return turned;
  };
  const mixOf = (h) => {
    const g = Math.floor((h * config.num_key_value_heads) / config.num_attention_heads);
    return ids.map((_, t) =>
      Array.from({ length: D }, (_, c) => attention[layer][h][t].reduce((sum, w, j) => sum + w * v[j][g][c], 0)),
    );
  };
  const mixes = Array.from({ length: config.num_attention_heads }, (_, h) => mixOf(h));
  const joined = ids.map((_, t) => mixes.flatMap((mix) => mix[t]));
  const name = (part) => shippedWeights[`model.layers.${layer}.self_attn.${part}_proj.weight`];
  return {
    ...{ D, x, turn },
    q: q.map((heads, t) => turn(heads[head], -t)),
    k: k.map((heads, t) => turn(heads[group], -t)),
    turned: { q: q.map((heads) => heads[head]), k: k.map((heads) => heads[group]) },
    v: v.map((heads) => heads[group]),
    ...{ scores: scores[layer][head], weights: attention[layer][head], mixed: mixes[head], joined },
    output: joined.map((token) => times(name('o'), token)),
  };
}
