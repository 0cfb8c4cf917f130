// What the frequencies of RoPE are made from: Hugging Face's rope_scaling and the options beside it, checked.
import { integer, isAbsent, optionsOf } from './check.js';
import { refuse } from './errors.js';

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

/** Old names that config.json files still carry. @type {Record<string, string>} */
const kAliases = { su: 'longrope', mrope: 'default' };
const kMostRotaryDim = 2 ** 20;
const kTypes = ['default', 'linear', 'dynamic', 'yarn', 'longrope', 'llama3', 'proportional'];
const kScalingKeys = [
  ...['rope_type', 'type', 'factor', 'original_max_position_embeddings', 'max_position_embeddings', 'rope_theta'],
  ...['attention_factor', 'beta_fast', 'beta_slow', 'mscale', 'mscale_all_dim', 'truncate', 'finetuned'],
  ...['short_factor', 'long_factor', 'short_mscale', 'long_mscale', 'low_freq_factor', 'high_freq_factor'],
  ...['partial_rotary_factor', 'mrope_section', 'mrope_interleaved'],
];

/** @param {string} fn @param {unknown} value @returns {number | null} */
export function sequenceLengthOf(fn, value) {
  return isAbsent(value) ? null : integer(fn, 'sequenceLength', value, 0, Number.MAX_SAFE_INTEGER);
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
  if (isAbsent(value)) return {};
  const scaling = optionsOf(`${fn}: scaling`, value, kScalingKeys);
  return Object.fromEntries(Object.entries(scaling).filter(([, entry]) => !isAbsent(entry)));
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
  if (!isAbsent(option) && theta !== undefined && option !== theta) {
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
  return isAbsent(value) ? null : positive(fn, name, value);
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
