// The angular frequencies of rotary position embedding, in float64, with the scalings of Hugging Face's rope_scaling.
//
// Pair i of d/2 turns by p · ω_i at position p; ω_i = base^(−2i/d) before scaling. Some scalings also multiply cos and
// sin by an attention factor a, which scales logits by a².

import { optionsOf } from './check.js';
import { ropeConfig, sequenceLengthOf } from './rope-config.js';

/** @import { RopeConfig } from './rope-config.js' */
/** @import { RopeScaling } from './types.js' */

/** @typedef {{ frequencies: Float64Array, attentionFactor: number }} RopeFrequencies */

const kOptions = ['rotaryDim', 'base', 'scaling', 'maxPositionEmbeddings', 'sequenceLength'];

/**
 * The frequencies of RoPE, for use elsewhere or to look at.
 *
 * `sequenceLength` matters to `dynamic` and `longrope` only, which turn differently beyond the trained length; without
 * it they are as within it.
 *
 * @example
 * const scaling = { rope_type: 'linear', factor: 2 };
 * const { frequencies, attentionFactor } = ropeFrequencies({ rotaryDim: 4, scaling });
 * [[...frequencies], attentionFactor]; // → [[0.5, 0.005], 1]
 * @param {object} options
 * @param {number} options.rotaryDim channels that turn, even
 * @param {number} [options.base] 10000 unless said here or as `rope_theta` in `scaling`
 * @param {RopeScaling | null} [options.scaling] a Hugging Face `rope_scaling` object as it stands in config.json
 * @param {number} [options.maxPositionEmbeddings] from config.json, where `scaling` doesn't hold it
 * @param {number} [options.sequenceLength]
 * @returns {RopeFrequencies} ω_i in radians per position, `rotaryDim / 2` of them; and the factor of cos and sin
 * @throws {AttentionError} INVALID_OPTION: an unknown type, a missing or wrong value
 */
export function ropeFrequencies(options) {
  const fn = 'ropeFrequencies';
  const given = optionsOf(fn, options, kOptions);
  const config = ropeConfig(fn, given, null);
  return frequenciesOf(config, sequenceLengthOf(fn, given.sequenceLength) ?? 0);
}

/**
 * @param {RopeConfig} config @param {number} seen the current length, for the scalings that depend on it
 * @returns {RopeFrequencies}
 */
export function frequenciesOf(config, seen) {
  const { type, base, rotaryDim: d } = config;
  const factor = config.scaling.factor ?? 1;
  if (type === 'linear') return { frequencies: powers(base, d).map((w) => w / factor), attentionFactor: 1 };
  if (type === 'dynamic') return dynamic(config, seen);
  if (type === 'yarn') return yarn(config);
  if (type === 'longrope') return longrope(config, seen);
  if (type === 'llama3') return llama3(config);
  if (type === 'proportional') {
    const turning = Math.floor(((config.scaling.partial_rotary_factor ?? 1) * d) / 2);
    const frequencies = powers(base, d).map((w, i) => (i < turning ? w / factor : 0));
    return { frequencies, attentionFactor: 1 };
  }
  return { frequencies: powers(base, d), attentionFactor: 1 };
}

/** ω_i = base^(−2i/d) @param {number} base @param {number} d */
const powers = (base, d) => Float64Array.from({ length: d / 2 }, (_, i) => base ** ((-2 * i) / d));

/**
 * NTK-aware scaling whose base grows with the length. Keys that were cached earlier keep their rotation; give
 * `sequenceLength` to fix the base of a sequence.
 * @param {RopeConfig} config @param {number} seen @returns {RopeFrequencies}
 */
function dynamic({ base, rotaryDim: d, scaling, L0, Lmax }, seen) {
  const trained = /** @type {number} */ (L0 ?? Lmax);
  const s = scaling.factor;
  const growth = (s * Math.max(seen, trained)) / trained - (s - 1);
  // With d = 2 the only frequency is base^0 = 1 whatever the base.
  const stretched = d === 2 ? base : base * growth ** (d / (d - 2));
  return { frequencies: powers(stretched, d), attentionFactor: 1 };
}

/**
 * "NTK by parts": fast pairs keep their frequency, slow ones are divided by s, a ramp lies between.
 * Source: Peng et al., YaRN (https://arxiv.org/abs/2309.00071).
 * @param {RopeConfig} config @returns {RopeFrequencies}
 */
function yarn({ base, rotaryDim: d, scaling, L0, Lmax }) {
  const trained = /** @type {number} */ (L0 ?? Lmax);
  const s = scaling.factor ?? /** @type {number} */ (Lmax) / trained;
  /** The pair that turns `turns` times over the trained length. @param {number} turns */
  const pairOf = (turns) => (d * Math.log(trained / (2 * Math.PI * turns))) / (2 * Math.log(base));
  let low = pairOf(scaling.beta_fast ?? 32);
  let high = pairOf(scaling.beta_slow ?? 1);
  if (scaling.truncate ?? true) [low, high] = [Math.floor(low), Math.ceil(high)];
  low = Math.max(low, 0);
  high = Math.min(high, d - 1);
  if (low === high) high += 0.001;
  const frequencies = powers(base, d).map((w, i) => {
    const ramp = Math.min(Math.max((i - low) / (high - low), 0), 1);
    return w * (1 - ramp) + (w / s) * ramp;
  });
  return { frequencies, attentionFactor: yarnFactor(s, scaling) };
}

/** @param {number} s @param {Record<string, any>} scaling */
function yarnFactor(s, { attention_factor, mscale, mscale_all_dim }) {
  /** @param {number} m */
  const g = (m) => (s <= 1 ? 1 : 0.1 * m * Math.log(s) + 1);
  if (attention_factor !== undefined) return attention_factor;
  return mscale !== undefined && mscale_all_dim !== undefined ? g(mscale) / g(mscale_all_dim) : g(1);
}

/**
 * A divisor for each pair, from one list up to the trained length and from another beyond it.
 * Source: Ding et al., LongRoPE (https://arxiv.org/abs/2402.13753).
 * @param {RopeConfig} config @param {number} seen @returns {RopeFrequencies}
 */
function longrope({ base, rotaryDim, scaling, L0, Lmax }, seen) {
  const trained = /** @type {number} */ (L0 ?? Lmax);
  const isLong = seen > trained;
  const divisors = isLong ? scaling.long_factor : scaling.short_factor;
  const s = scaling.factor ?? (Lmax ?? trained) / trained;
  const byLength = s <= 1 ? 1 : Math.sqrt(1 + Math.log(s) / Math.log(trained));
  const own = isLong ? scaling.long_mscale : scaling.short_mscale;
  return {
    frequencies: powers(base, rotaryDim).map((w, i) => w / divisors[i]),
    attentionFactor: scaling.attention_factor ?? own ?? byLength,
  };
}

/**
 * Pairs of long wave length are divided by s, short ones stay, with a ramp between.
 * Source: the Llama 3.1 reference code.
 * @param {RopeConfig} config @returns {RopeFrequencies}
 */
function llama3({ base, rotaryDim, scaling, L0 }) {
  const { factor: s, low_freq_factor: low = 1, high_freq_factor: high = 4 } = scaling;
  const frequencies = powers(base, rotaryDim).map((w) => {
    const turns = ((L0 ?? 8192) * w) / (2 * Math.PI);
    const t = Math.min(Math.max((turns - low) / (high - low), 0), 1);
    return ((1 - t) * w) / s + t * w;
  });
  return { frequencies, attentionFactor: 1 };
}
