// Rotary position embedding in float64, from the formulas.
import { elements, valuesOf } from './tensors.js';

/** Turns per token of each pair, and the factor on cos and sin, for a `rope_scaling` object of a config.json. */
export function ropeFrequencies({ rotaryDim: d, base = 10000, scaling = {}, sequenceLength = 0 }) {
  const plain = (b) => Array.from({ length: d / 2 }, (_, i) => b ** ((-2 * i) / d));
  const type = scaling.rope_type ?? scaling.type ?? 'default';
  const frequencies = plain(base);
  const original = scaling.original_max_position_embeddings ?? scaling.max_position_embeddings;
  switch (type) {
    case 'default':
      return { frequencies, attentionFactor: 1 };
    case 'linear':
      return { frequencies: frequencies.map((w) => w / scaling.factor), attentionFactor: 1 };
    case 'dynamic': {
      const length = Math.max(sequenceLength, original);
      const growth = (scaling.factor * length) / original - (scaling.factor - 1);
      return { frequencies: plain(base * growth ** (d / (d - 2))), attentionFactor: 1 };
    }
    case 'yarn':
      return yarn(frequencies, d, base, scaling);
    case 'llama3': {
      const { factor, low_freq_factor: low, high_freq_factor: high } = scaling;
      const scaled = frequencies.map((w) => {
        const turns = (original * w) / (2 * Math.PI);
        if (turns < low) return w / factor;
        if (turns > high) return w;
        const t = (turns - low) / (high - low);
        return ((1 - t) * w) / factor + t * w;
      });
      return { frequencies: scaled, attentionFactor: 1 };
    }
    case 'longrope': {
      const divisors = sequenceLength > original ? scaling.long_factor : scaling.short_factor;
      const s = scaling.factor ?? scaling.max_position_embeddings / original;
      const attentionFactor =
        scaling.attention_factor ?? (s <= 1 ? 1 : Math.sqrt(1 + Math.log(s) / Math.log(original)));
      return { frequencies: frequencies.map((w, i) => w / divisors[i]), attentionFactor };
    }
    case 'proportional': {
      const turning = Math.floor((scaling.partial_rotary_factor * d) / 2);
      return {
        frequencies: frequencies.map((w, i) => (i < turning ? w / (scaling.factor ?? 1) : 0)),
        attentionFactor: 1,
      };
    }
    default:
      throw new Error(`no formula for ${type}`);
  }
}

function yarn(frequencies, d, base, scaling) {
  const original = scaling.original_max_position_embeddings;
  const s = scaling.factor ?? scaling.max_position_embeddings / original;
  const dim = (turns) => (d * Math.log(original / (2 * Math.PI * turns))) / (2 * Math.log(base));
  let low = dim(scaling.beta_fast ?? 32);
  let high = dim(scaling.beta_slow ?? 1);
  if (scaling.truncate !== false) {
    low = Math.floor(low);
    high = Math.ceil(high);
  }
  low = Math.max(low, 0);
  high = Math.min(high, d - 1);
  if (low === high) high += 0.001;
  const blended = frequencies.map((w, i) => {
    const ramp = Math.min(Math.max((i - low) / (high - low), 0), 1);
    return w * (1 - ramp) + (w / s) * ramp;
  });
  const g = (m) => (s <= 1 ? 1 : 0.1 * m * Math.log(s) + 1);
  const { mscale, mscale_all_dim: all } = scaling;
  return {
    frequencies: blended,
    attentionFactor: scaling.attention_factor ?? (mscale && all ? g(mscale) / g(all) : g(1)),
  };
}

/** x: [..., T, D] of rank 2 to 4; `positions` is an array of length T or { data, shape: [B, T] }. */
export function rope(x, { style, base, rotaryDim, positions, offset = 0, scaling, sequenceLength, inverse = false }) {
  const D = x.shape.at(-1);
  const T = x.shape.at(-2);
  const B = x.shape.length === 4 ? x.shape[0] : 1;
  const d = rotaryDim ?? D;
  const { frequencies, attentionFactor } = ropeFrequencies({ rotaryDim: d, base, scaling, sequenceLength });
  const values = valuesOf(x);
  const output = Float64Array.from(values);
  const rowsInItem = elements(x.shape.slice(0, -1)) / B;
  for (let row = 0; row < rowsInItem * B; ++row) {
    const b = Math.floor(row / rowsInItem);
    const t = row % T;
    const p = !positions ? offset + t : positions.shape ? positions.data[b * T + t] : positions[t];
    for (let i = 0; i < d / 2; ++i) {
      const [first, second] = style === 'interleaved' ? [2 * i, 2 * i + 1] : [i, i + d / 2];
      const cos = attentionFactor * Math.cos(p * frequencies[i]);
      const sin = attentionFactor * Math.sin(p * frequencies[i]) * (inverse ? -1 : 1);
      const x1 = values[row * D + first];
      const x2 = values[row * D + second];
      output[row * D + first] = x1 * cos - x2 * sin;
      output[row * D + second] = x2 * cos + x1 * sin;
    }
  }
  return { data: output, shape: x.shape };
}
