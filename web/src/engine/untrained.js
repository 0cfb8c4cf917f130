// One layer that is not trained: multi-head attention of the package with random, seeded parameters. It has the switches
// that a trained model can't be asked to bear.
import { hashText, normals } from './random.js';
import { splitText } from './words.js';

/** @import { Attention } from 'attention-wasm' */
/** @import { Run, Tensor } from '../types.js' */
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

/** The parameters depend on the seed alone: more heads cut the same channels into more pieces. @param {number} seed */
function randomStateDict(seed) {
  const deviations = { q_proj: kSpread, k_proj: kSpread, v_proj: 1, out_proj: 1 };
  /** @type {Record<string, Tensor>} */
  const dict = {};
  for (const [name, deviation] of Object.entries(deviations)) {
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

/** @param {Attention} attention */
export function createUntrained(attention) {
  /** @type {{ key: string, layer: ReturnType<Attention['multiHeadAttention']>, stateDict: Record<string, Tensor> } | null} */
  let current = null;

  /** @param {LayerSettings} settings */
  function layerFor(settings) {
    const { heads, causal, rope, seed } = settings;
    const key = JSON.stringify([heads, causal, rope, seed]);
    if (current?.key === key) return current;
    current?.layer.dispose();
    const layer = attention.multiHeadAttention(layerConfig(settings));
    const stateDict = randomStateDict(seed);
    layer.loadStateDict(stateDict);
    current = { key, layer, stateDict };
    return current;
  }

  return {
    /** @param {string} text @param {LayerSettings} settings @returns {Run} */
    run(text, settings) {
      const { tokens, total } = splitText(text);
      const { layer, stateDict } = layerFor(settings);
      const x = embed(tokens, settings.seed);
      const start = performance.now();
      const { output, weights } = layer.forward(x, { needWeights: true });
      const milliseconds = performance.now() - start;
      const { heads, causal } = settings;
      return {
        ...{ tokens, ids: [], total, layers: 1, heads, causal, milliseconds },
        weights: /** @type {Tensor} */ (weights).data,
        layer: { x, output: /** @type {Tensor} */ (output), stateDict, config: layerConfig(settings) },
      };
    },
  };
}
