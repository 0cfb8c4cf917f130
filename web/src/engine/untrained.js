// One layer that is not trained: multi-head attention of the package with random, seeded parameters. It has the switches
// that a trained model can't be asked to bear.
import { hashText, normals } from './random.js';
import { KernelSource } from './source.js';
import { splitText } from './words.js';

/** @import { Attention } from 'attention-wasm' */
/** @import { Run, Tensor } from '../types.js' */
/** @import { Heads } from './source.js' */
/** @typedef {{ heads: number, causal: boolean, rope: boolean, seed: number }} LayerSettings */

const kModelWidth = 64;

/** Standard deviation of a query or key channel: scores spread by its square, enough for uneven rows. */
const kSpread = 1.3;

/** @param {LayerSettings} settings */
function layerConfig({ heads, causal, rope }) {
  return {
    dModel: kModelWidth,
    numHeads: heads,
    isCausal: causal,
    ...(rope && { rope: { style: /** @type {const} */ ('half') } }),
  };
}

/** Of the parameters, times the root of the width. */
export const kDeviations = { q_proj: kSpread, k_proj: kSpread, v_proj: 1, out_proj: 1 };

/** The parameters depend on the seed alone: more heads cut the same channels into more pieces. @param {number} seed */
function randomStateDict(seed) {
  /** @type {Record<string, Tensor>} */
  const dict = {};
  for (const [name, deviation] of Object.entries(kDeviations)) {
    dict[`${name}.weight`] = {
      data: normals(hashText(`${seed} ${name}`), kModelWidth ** 2, deviation / Math.sqrt(kModelWidth)),
      shape: [kModelWidth, kModelWidth],
    };
  }
  return dict;
}

/** One vector for each different token, so that equal tokens have equal vectors. @param {string[]} tokens @param {number} seed */
function embed(tokens, seed) {
  const data = new Float32Array(tokens.length * kModelWidth);
  tokens.forEach((token, i) => {
    data.set(normals(hashText(`${seed} token ${token}`), kModelWidth, 1), i * kModelWidth);
  });
  return { data, shape: [1, tokens.length, kModelWidth] };
}

/** @param {Attention} attention of either kind: what it gives is waited for */
export function createUntrained(attention) {
  /** @type {{ key: string, layer: ReturnType<Attention['multiHeadAttention']>, stateDict: Record<string, Tensor> } | null} */
  let current = null;

  /** @param {LayerSettings} settings */
  async function layerFor(settings) {
    const { heads, causal, rope, seed } = settings;
    const key = JSON.stringify([heads, causal, rope, seed]);
    if (current?.key === key) return current;
    current?.layer.dispose();
    const layer = await attention.multiHeadAttention(layerConfig(settings));
    const stateDict = randomStateDict(seed);
    await layer.loadStateDict(stateDict);
    current = { key, layer, stateDict };
    return current;
  }

  /**
   * Queries or keys as the layer makes them, [heads, T, D].
   * @param {Tensor} x [1, T, width] @param {Tensor} weight @param {LayerSettings} settings @returns {Promise<Heads>}
   */
  async function project(x, weight, { heads, rope }) {
    const T = x.shape[1];
    const D = kModelWidth / heads;
    const { data } = await attention.linear({ data: x.data, shape: [T, kModelWidth] }, weight);
    const split = new Float32Array(data.length);
    for (let t = 0; t < T; t++) {
      for (let head = 0; head < heads; head++) {
        const first = t * kModelWidth + head * D;
        split.set(data.subarray(first, first + D), (head * T + t) * D);
      }
    }
    const whole = { data: split, shape: [heads, T, D] };
    return rope && T > 0 ? attention.rope(whole, { style: 'half' }) : whole;
  }

  /** @type {KernelSource | null} */
  let source = null;

  return {
    /** @param {string} text @param {LayerSettings} settings @returns {Promise<Run>} */
    async run(text, settings) {
      const { tokens, total } = splitText(text);
      const { layer, stateDict } = await layerFor(settings);
      const x = embed(tokens, settings.seed);
      const start = performance.now();
      const { output } = await layer.forward(x);
      const milliseconds = performance.now() - start;
      const { heads, causal } = settings;
      const rule = { causal, left: -1, right: -1 };
      source = new KernelSource(attention, {
        queries: [await project(x, stateDict['q_proj.weight'], settings)],
        keys: [await project(x, stateDict['k_proj.weight'], settings)],
        kinds: [{ scale: 1 / Math.sqrt(kModelWidth / heads), softcap: 0, rule }],
      });
      return {
        ...{ tokens, ids: [], prompt: tokens.length, total, layers: 1, heads, causal, rules: [rule], milliseconds },
        changed: false,
        twins: await twinsOf(tokens, source),
        layer: { x, output: /** @type {Tensor} */ (output), stateDict, config: layerConfig(settings) },
      };
    },
    get sources() {
      return source && { source, before: source };
    },
  };
}

/** The first two places of the first token that comes again, and the largest difference of their rows. @param {string[]} tokens @param {KernelSource} source */
async function twinsOf(tokens, source) {
  const first = tokens.findIndex((token, i) => tokens.indexOf(token, i + 1) !== -1);
  if (first < 0) return null;
  const second = tokens.indexOf(tokens[first], first + 1);
  const T = tokens.length;
  let difference = 0;
  for (let head = 0; head < source.heads; head++) {
    const weights = await source.weights([0, head], 0);
    for (let column = 0; column < T; column++) {
      difference = Math.max(difference, Math.abs(weights[first * T + column] - weights[second * T + column]));
    }
  }
  return { first, second, difference };
}
