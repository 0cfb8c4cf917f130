// What is painted before anything has loaded: the default text, computed when the page was built.
import stored from '../model/example.json' with { type: 'json' };

/** @import { Candidate, HeadScores, ModelInfo, Run } from './types.js' */

/** Weights are stored as whole numbers, the lower triangles row by row. */
const kScale = 10000;

/** @returns {{ run: Run, candidates: Candidate[], scores: HeadScores, info: ModelInfo }} */
export function storedExample() {
  const { tokens, ids, info, candidates, scores } = stored;
  const T = tokens.length;
  const weights = new Float32Array(info.layers * info.heads * T * T);
  let next = 0;
  for (let at = 0; at < weights.length; at += T) {
    const row = (at / T) % T;
    for (let column = 0; column <= row; column++) weights[at + column] = stored.weights[next++] / kScale;
  }
  const { layers, heads } = info;
  return {
    run: { tokens, ids, total: T, layers, heads, causal: true, weights, milliseconds: 0 },
    ...{ candidates, scores, info },
  };
}
