// Writing token by token.
import { finite, integer, integers, optionsOf } from '../check.js';
import { refuse } from '../errors.js';
import { pacer, signalOf, throwIfAborted } from './pace.js';
import { mulberry32, sample } from './sampling.js';

/** @import { Transformer } from '../transformer.js' */
/** @import { Float32Result } from '../types.js' */
/** @import { TransformerCache } from './cache.js' */
/** @import { ModelConfig } from './config.js' */
/** @import { Sampling } from './sampling.js' */
/** @import { AttentionOverrides, CaptureOptions, GeneratedToken } from './types.js' */

/**
 * A checked call.
 * @typedef {object} GenerateCall
 * @property {number} maxTokens
 * @property {Sampling} sampling
 * @property {ReadonlySet<number>} stopTokens
 * @property {TransformerCache | null} cache
 * @property {CaptureOptions | null} capture @property {AttentionOverrides | null} attention checked by forward()
 * @property {AbortSignal | null} signal
 * @property {((step: GeneratedToken) => void) | null} onToken
 */

const kNames = [
  ...['maxTokens', 'temperature', 'topK', 'topP', 'seed', 'stopTokens'],
  ...['cache', 'capture', 'attention', 'signal', 'onToken'],
];
const kMostTokens = 2 ** 29;

/** @param {string} fn @param {unknown} given @param {ModelConfig} config @returns {GenerateCall} */
export function describeGenerate(fn, given, { vocabulary, stopTokens }) {
  const options = optionsOf(fn, given, kNames);
  const temperature = finite(fn, 'temperature', options.temperature ?? 0);
  if (temperature < 0) refuse('INVALID_OPTION', fn, 'temperature must be 0 or positive', temperature);
  const topP = finite(fn, 'topP', options.topP ?? 1);
  if (topP <= 0 || topP > 1) refuse('INVALID_OPTION', fn, 'topP must be above 0 and at most 1', topP);
  const onToken = options.onToken ?? null;
  if (onToken !== null && typeof onToken !== 'function') {
    refuse('INVALID_OPTION', fn, 'onToken must be a function', onToken);
  }
  const seed = integer(fn, 'seed', options.seed ?? Math.floor(Math.random() * 2 ** 32), 0, 2 ** 32 - 1);
  return {
    maxTokens: integer(fn, 'maxTokens', options.maxTokens, 0, kMostTokens),
    sampling: {
      temperature,
      topK: integer(fn, 'topK', options.topK ?? vocabulary, 1, kMostTokens),
      topP,
      random: mulberry32(seed),
    },
    stopTokens: new Set(
      options.stopTokens ? integers(fn, 'stopTokens', options.stopTokens, -1, 0, vocabulary - 1) : stopTokens,
    ),
    ...{ cache: options.cache ?? null, capture: options.capture ?? null, attention: options.attention ?? null },
    signal: signalOf(fn, options.signal),
    onToken,
  };
}

/**
 * @param {string} fn @param {Transformer} model @param {Int32Array} tokens @param {GenerateCall} call
 * @returns {AsyncGenerator<GeneratedToken, void, undefined>}
 */
export async function* generated(fn, model, tokens, { maxTokens, sampling, stopTokens, signal, onToken, ...call }) {
  if (maxTokens === 0) return;
  const room = model.info.positions ?? Number.POSITIVE_INFINITY;
  const capacity = Math.min(Math.max(tokens.length, 1) + maxTokens - 1, room);
  const cache = call.cache ?? (await model.createCache({ capacity }));
  const pause = pacer();
  try {
    let next = tokens;
    for (let count = 1; ; ++count) {
      throwIfAborted(fn, signal);
      const result = await model.forward(next, { cache, capture: call.capture, attention: call.attention });
      const token = sample(result.logits.data, sampling);
      const step = { token, ...result };
      onToken?.(step);
      yield step;
      if (count === maxTokens || stopTokens.has(token)) return;
      await pause();
      next = Int32Array.of(token);
    }
  } finally {
    if (!call.cache) cache.dispose();
  }
}
