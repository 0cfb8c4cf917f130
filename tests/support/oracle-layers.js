// The linear layer and the multi-head attention layer in float64, from the formulas.
import { attention } from './oracle.js';
import { rope } from './oracle-rope.js';
import { elements, transpose, valuesOf } from './tensors.js';

/** x weight^T + bias over the last axis; weight is [out, in]. */
export function linear(x, weight, bias) {
  const [N, K] = weight.shape;
  const M = elements(x.shape) / K;
  const values = valuesOf(x);
  const weights = valuesOf(weight);
  const output = new Float64Array(M * N);
  for (let m = 0; m < M; ++m)
    for (let n = 0; n < N; ++n) {
      let sum = bias ? valuesOf(bias)[n] : 0;
      for (let k = 0; k < K; ++k) sum += values[m * K + k] * weights[n * K + k];
      output[m * N + n] = sum;
    }
  return { data: output, shape: [...x.shape.slice(0, -1), N] };
}

/**
 * x: [B, T, dModel]; `context` is what keys and values are made from, one tensor or { key, value }.
 * Projects, splits into heads, turns queries and keys, attends, joins and projects back.
 * `state` maps q_proj.weight, k_proj.weight, v_proj.weight, out_proj.weight and their .bias to tensors.
 */
export function multiHeadAttention(config, state, x, { context = x, positions, ...options } = {}) {
  const { numHeads, numKvHeads = numHeads, isCausal, scale, softcap, windowSize, alibiSlopes, sinks } = config;
  const { key, value } = context.key ? context : { key: context, value: context };
  const project = (input, name) => linear(input, state[`${name}.weight`], state[`${name}.bias`]);
  const norm = (heads, name) => (config.qkNorm ? rms(heads, state[`${name}.weight`], config.qkNorm.epsilon) : heads);
  const q = turn(norm(splitHeads(project(x, 'q_proj'), numHeads), 'q_norm'), config.rope, positions);
  const k = turn(norm(splitHeads(project(key, 'k_proj'), numKvHeads), 'k_norm'), config.rope, positions);
  const v = splitHeads(project(value, 'v_proj'), numKvHeads);
  const attended = attention(q, k, v, { isCausal, scale, softcap, windowSize, alibiSlopes, sinks, ...options });
  const [B, H, T, Dv] = attended.output.shape;
  const joined = { data: transpose(attended.output, [0, 2, 1, 3]).data, shape: [B, T, H * Dv] };
  return { output: project(joined, 'out_proj'), weights: attended.weights };
}

/** x / sqrt(mean x^2 + epsilon) * weight over the last axis. */
function rms({ data, shape }, weight, epsilon = 1e-6) {
  const width = shape.at(-1);
  const result = Float64Array.from(data);
  for (let at = 0; at < data.length; at += width) {
    const row = result.subarray(at, at + width);
    const factor = 1 / Math.sqrt(row.reduce((sum, x) => sum + x * x, 0) / width + epsilon);
    row.forEach((x, c) => {
      row[c] = x * factor * weight.data[c];
    });
  }
  return { data: result, shape };
}

function splitHeads({ data, shape: [B, T, width] }, heads) {
  return transpose({ data, shape: [B, T, heads, width / heads] }, [0, 2, 1, 3]);
}

function turn(x, options, positions) {
  return options ? rope(x, { ...options, positions }) : x;
}
