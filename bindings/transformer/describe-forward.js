// Checks a call of forward() and turns it into one complete description.
import { finite, flag, integers, optionsOf } from '../check.js';
import { windowOf } from '../check-visibility.js';
import { refuse } from '../errors.js';
import { TransformerCache } from './cache.js';

/** @import { Context } from '../check.js' */
/** @import { ModelConfig } from './config.js' */
/** @import { AttentionChange, Capture, ForwardCall } from './forward.js' */

const kCaptureNames = ['attention', 'hidden', 'queries', 'keys', 'values'];
const kWeightNames = ['layers', 'heads', 'rows'];
const kChangeNames = ['isCausal', 'scale', 'temperature', 'softcap', 'windowSize', 'rope'];

/** The attention as the model was trained. @type {AttentionChange} */
const kUnchanged = Object.freeze({
  ...{ isCausal: true, scale: null, temperature: 1, softcap: 0, windowSize: null, rope: true },
});

/**
 * @param {Context} context @param {ModelConfig} config @param {object} owner the model that a cache has to belong to
 * @param {unknown} given the tokens @param {Record<string, any>} options
 * @returns {ForwardCall}
 */
export function describeForward(context, config, owner, given, { cache, logits, capture, attention }) {
  const { fn } = context;
  const { vocabulary, positions } = config;
  const tokens = integers(fn, 'tokens', given, -1, 0, vocabulary - 1);
  if (tokens.length === 0) refuse('INVALID_SHAPE', fn, 'tokens must hold at least one token', tokens);
  const hasCache = cache !== undefined && cache !== null;
  const states = hasCache ? TransformerCache.statesOf(context, cache, owner) : null;
  const past = hasCache ? cache.length : 0;
  const room = Math.min(hasCache ? cache.capacity : Number.POSITIVE_INFINITY, positions || Number.POSITIVE_INFINITY);
  if (past + tokens.length > room) {
    refuse('CAPACITY', fn, `tokens must fit into ${room} positions, of which ${past} are taken`, tokens.length);
  }
  const wanted = logits ?? 'last';
  if (wanted !== 'last' && wanted !== 'all') refuse('INVALID_OPTION', fn, `logits must be 'last' or 'all'`, logits);
  const captured = optionsOf(`${fn}: capture`, capture, kCaptureNames);
  const isKept = (/** @type {string} */ name) => flag(fn, `capture.${name}`, captured[name], false);
  return {
    ...{ tokens, cache: states, allLogits: wanted === 'all', hidden: isKept('hidden') },
    ...{ queries: isKept('queries'), keys: isKept('keys'), values: isKept('values') },
    capture: weightsOf(fn, config, captured.attention ?? false, tokens.length),
    change: changeOf(fn, attention),
  };
}

/** @param {string} fn @param {ModelConfig} config @param {unknown} given @param {number} T @returns {Capture | null} */
function weightsOf(fn, { layers, heads }, given, T) {
  if (given === false) return null;
  const name = 'capture.attention';
  const options = given === true ? {} : optionsOf(`${fn}: ${name}`, given, kWeightNames);
  /** @param {'layers' | 'heads' | 'rows'} part @param {number} size */
  const chosen = (part, size) => {
    const numbers = integers(fn, `${name}.${part}`, options[part] ?? [...Array(size).keys()], -1, 0, size - 1);
    if (numbers.length === 0 || new Set(numbers).size < numbers.length) {
      refuse('INVALID_OPTION', fn, `${name}.${part} must hold at least one number, and none twice`, options[part]);
    }
    return numbers;
  };
  return { layers: new Set(chosen('layers', layers)), heads: chosen('heads', heads), rows: chosen('rows', T) };
}

/** @param {string} fn @param {unknown} given @returns {AttentionChange} */
function changeOf(fn, given) {
  if (given === undefined || given === null) return kUnchanged;
  const options = optionsOf(`${fn}: attention`, given, kChangeNames);
  const number = (/** @type {string} */ name, /** @type {number} */ byDefault) =>
    finite(fn, `attention.${name}`, options[name] ?? byDefault);
  const temperature = number('temperature', 1);
  if (temperature <= 0) refuse('INVALID_OPTION', fn, 'attention.temperature must be positive', temperature);
  const softcap = number('softcap', 0);
  if (softcap < 0) refuse('INVALID_OPTION', fn, 'attention.softcap must be 0 (off) or positive', softcap);
  const window = options.windowSize ?? null;
  return {
    isCausal: flag(fn, 'attention.isCausal', options.isCausal, true),
    scale: (options.scale ?? null) === null ? null : number('scale', 0),
    ...{ temperature, softcap },
    windowSize: window === null ? null : windowOf(`${fn}: attention`, window),
    rope: flag(fn, 'attention.rope', options.rope, true),
  };
}
