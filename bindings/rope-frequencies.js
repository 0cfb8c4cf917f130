// The angular frequencies of rotary position embedding, in float64, with the scalings of Hugging Face's rope_scaling.
//
// Pair i of d/2 turns by p · ω_i at position p; ω_i = base^(−2i/d) before scaling. Some scalings also multiply cos and
// sin by an attention factor a, which scales logits by a².

import { integer, optionsOf } from './check.js';
import { refuse } from './errors.js';

/** @import { RopeScaling } from './types.js' */

/**
 * What frequencies are made from, checked.
 * @typedef {object} RopeConfig
 * @property {string} key the same for the same frequencies
 * @property {number} rotaryDim
 * @property {number} base
 * @property {string} type
 * @property {Record<string, any>} scaling
 * @property {number | null} L0 trained length
 * @property {number | null} Lmax
 * @property {boolean} dependsOnLength
 */

/** @typedef {{ frequencies: Float64Array, attentionFactor: number }} RopeFrequencies */

/** Old names that config.json files still carry. @type {Record<string, string>} */
const kAliases = { su: 'longrope', mrope: 'default' };
const kMostRotaryDim = 2 ** 20;
const kTypes = ['default', 'linear', 'dynamic', 'yarn', 'longrope', 'llama3', 'proportional'];
const kScalingKeys = new Set([
  ...['rope_type', 'type', 'factor', 'original_max_position_embeddings', 'max_position_embeddings', 'rope_theta'],
  ...['attention_factor', 'beta_fast', 'beta_slow', 'mscale', 'mscale_all_dim', 'truncate', 'finetuned'],
  ...['short_factor', 'long_factor', 'short_mscale', 'long_mscale', 'low_freq_factor', 'high_freq_factor'],
  ...['partial_rotary_factor', 'mrope_section', 'mrope_interleaved'],
]);
const kOptions = new Set(['rotaryDim', 'base', 'scaling', 'maxPositionEmbeddings', 'sequenceLength']);

/**
 * The frequencies of RoPE, for use elsewhere or to look at.
 *
 * `sequenceLength` matters to `dynamic` and `longrope` only, which turn differently beyond the trained length; without
 * it they are as within it.
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

/** @param {string} fn @param {unknown} value @returns {number | null} */
export function sequenceLengthOf(fn, value) {
  return value === undefined || value === null
    ? null
    : integer(fn, 'sequenceLength', value, 0, Number.MAX_SAFE_INTEGER);
}

/**
 * @param {string} fn @param {Record<string, any>} options
 * @param {number | null} headDim D, the default of rotaryDim; null where there is none
 * @returns {RopeConfig}
 */
export function ropeConfig(fn, options, headDim) {
  const scaling = scalingOf(fn, options.scaling);
  const type = typeOf(fn, scaling);
  const rotaryDim = rotaryDimOf(fn, options.rotaryDim, type, scaling, headDim);
  const base = baseOf(fn, options.base, scaling.rope_theta);
  const Lmax = lengthOf(fn, 'maxPositionEmbeddings', options.maxPositionEmbeddings ?? scaling.max_position_embeddings);
  const name = 'scaling.original_max_position_embeddings';
  const L0 = lengthOf(fn, name, scaling.original_max_position_embeddings);
  const config = { rotaryDim, base, type, scaling, Lmax, L0 };
  checkScaling(fn, config);
  const key = type === 'default' ? `${rotaryDim} ${base}` : JSON.stringify(config);
  return { key, ...config, dependsOnLength: type === 'dynamic' || type === 'longrope' };
}

/** @param {string} fn @param {unknown} value @returns {Record<string, any>} */
function scalingOf(fn, value) {
  if (value === undefined || value === null) return {};
  const scaling = optionsOf(`${fn}: scaling`, value, kScalingKeys);
  return Object.fromEntries(Object.entries(scaling).filter(([, entry]) => entry !== undefined && entry !== null));
}

/** @param {string} fn @param {Record<string, any>} scaling */
function typeOf(fn, scaling) {
  const { rope_type, type } = scaling;
  if (rope_type !== undefined && type !== undefined && alias(rope_type) !== alias(type)) {
    refuse('INVALID_OPTION', fn, 'scaling.rope_type and scaling.type must agree', [rope_type, type]);
  }
  const hasType = rope_type !== undefined || type !== undefined;
  // Entries that mean something without a type: a plain rotation is then what is asked for.
  const plain = [
    'rope_theta',
    'partial_rotary_factor',
    'mrope_section',
    'mrope_interleaved',
    'max_position_embeddings',
  ];
  if (!hasType && Object.keys(scaling).every((name) => plain.includes(name))) return 'default';
  const wanted = alias(rope_type ?? type);
  if (!kTypes.includes(wanted)) {
    refuse('INVALID_OPTION', fn, `scaling.rope_type must be among ${kTypes.join(', ')}`, rope_type ?? type);
  }
  return wanted;
}

/** @param {string} type */
const alias = (type) => (Object.hasOwn(kAliases, type) ? kAliases[type] : type);

/**
 * @param {string} fn @param {unknown} value @param {string} type @param {Record<string, any>} scaling
 * @param {number | null} headDim
 */
function rotaryDimOf(fn, value, type, scaling, headDim) {
  const part = scaling.partial_rotary_factor ?? 1;
  if (typeof part !== 'number' || !(part >= 0 && part <= 1)) {
    refuse('INVALID_OPTION', fn, 'scaling.partial_rotary_factor must be a number of 0 to 1', part);
  }
  // 'proportional' counts the whole width and lets the pairs beyond the part stand still.
  const byDefault = headDim === null ? undefined : type === 'proportional' ? headDim : Math.floor(headDim * part);
  const most = headDim ?? kMostRotaryDim;
  const rotaryDim = /** @type {number} */ (value ?? byDefault);
  if (!Number.isInteger(rotaryDim) || rotaryDim < 2 || rotaryDim % 2 !== 0 || rotaryDim > most) {
    const rule = `rotaryDim must be an even integer of 2 to ${headDim === null ? most : `D = ${most}`}`;
    refuse('INVALID_OPTION', fn, rule, rotaryDim);
  }
  return rotaryDim;
}

/** @param {string} fn @param {unknown} option @param {unknown} theta @returns {number} */
function baseOf(fn, option, theta) {
  if (option !== undefined && option !== null && theta !== undefined && option !== theta) {
    refuse('INVALID_OPTION', fn, `base must be that of scaling.rope_theta, ${theta}, where both are given`, option);
  }
  const base = option ?? theta ?? 10000;
  return positive(fn, 'base', base);
}

/** @param {string} fn @param {string} name @param {unknown} value @returns {number} */
function positive(fn, name, value) {
  if (typeof value !== 'number' || !(value > 0) || !Number.isFinite(value)) {
    refuse('INVALID_OPTION', fn, `${name} must be a positive number`, value);
  }
  return value;
}

/** @param {string} fn @param {string} name @param {unknown} value @returns {number | null} */
function lengthOf(fn, name, value) {
  return value === undefined || value === null ? null : positive(fn, name, value);
}

/** @param {string} fn @param {{ type: string, scaling: Record<string, any>, rotaryDim: number, base: number, L0: number | null, Lmax: number | null }} config */
function checkScaling(fn, { type, scaling, rotaryDim, base, L0, Lmax }) {
  const numbers = ['factor', 'attention_factor', 'beta_fast', 'beta_slow', 'low_freq_factor', 'high_freq_factor'];
  for (const name of [...numbers, 'short_mscale', 'long_mscale']) {
    if (scaling[name] !== undefined) positive(fn, `scaling.${name}`, scaling[name]);
  }
  for (const name of ['mscale', 'mscale_all_dim']) {
    if (scaling[name] !== undefined && !Number.isFinite(scaling[name])) {
      refuse('INVALID_OPTION', fn, `scaling.${name} must be a number`, scaling[name]);
    }
  }
  /** @param {boolean} holds @param {string} what */
  const need = (holds, what) => {
    if (!holds) refuse('INVALID_OPTION', fn, `scaling of type '${type}' must have ${what}`, scaling);
  };
  const lengths = 'original_max_position_embeddings or max_position_embeddings (or maxPositionEmbeddings beside it)';
  if (type === 'linear' || type === 'dynamic' || type === 'llama3') need(scaling.factor !== undefined, 'factor');
  if (type === 'dynamic') need((L0 ?? Lmax) !== null, lengths);
  if (type === 'yarn') {
    need((L0 ?? Lmax) !== null, lengths);
    need(scaling.factor !== undefined || (L0 !== null && Lmax !== null), 'factor, or both lengths');
    need(base !== 1, 'a base other than 1');
  }
  if (type === 'llama3') {
    need((scaling.high_freq_factor ?? 4) > (scaling.low_freq_factor ?? 1), 'high_freq_factor above low_freq_factor');
  }
  if (type === 'longrope') checkLongrope(need, scaling, rotaryDim, L0, Lmax);
}

/**
 * @param {(holds: boolean, what: string) => void} need @param {Record<string, any>} scaling @param {number} rotaryDim
 * @param {number | null} L0 @param {number | null} Lmax
 */
function checkLongrope(need, scaling, rotaryDim, L0, Lmax) {
  for (const name of ['short_factor', 'long_factor']) {
    const factors = scaling[name];
    const isRight =
      Array.isArray(factors) && factors.length === rotaryDim / 2 && factors.every((f) => f > 0 && f < Infinity);
    need(isRight, `${name}, ${rotaryDim / 2} positive numbers`);
  }
  need((L0 ?? Lmax) !== null, 'original_max_position_embeddings or max_position_embeddings');
  const hasFactor = scaling.attention_factor ?? scaling.factor ?? scaling.short_mscale;
  need(hasFactor !== undefined || (L0 !== null && Lmax !== null), 'factor, or both lengths');
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
