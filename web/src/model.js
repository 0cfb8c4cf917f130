// From tokens to attention weights: a multi-head layer of the package with random, seeded parameters.
import { hashText, normals } from './random.js';

/** @typedef {import('attention-wasm').Attention} Attention */
/** @typedef {{ data: Float32Array, shape: readonly number[] }} Tensor */
/** @typedef {{ heads: number, causal: boolean, rope: boolean, seed: number }} LayerSettings */
/**
 * @typedef {object} Run what one run of the layer took and gave
 * @property {string[]} tokens
 * @property {Tensor} weights [1, H, T, T]
 * @property {Tensor} output [1, T, dModel]
 * @property {number} milliseconds
 * @property {{ x: Tensor, stateDict: Record<string, Tensor>, config: ReturnType<typeof layerConfig> }} inputs
 */

export const kModelWidth = 64;

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
export function createModel(attention) {
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
    /**
     * @param {string[]} tokens
     * @param {LayerSettings} settings
     * @returns {Run}
     */
    run(tokens, settings) {
      const { layer, stateDict } = layerFor(settings);
      const x = embed(tokens, settings.seed);
      const start = performance.now();
      const { output, weights } = layer.forward(x, { needWeights: true });
      const milliseconds = performance.now() - start;
      return {
        tokens,
        weights: /** @type {Tensor} */ (weights),
        output: /** @type {Tensor} */ (output),
        milliseconds,
        inputs: { x, stateDict, config: layerConfig(settings) },
      };
    },
  };
}
