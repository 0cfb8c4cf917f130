// One attention call of a test: tensors from a seed of its own, options, and the oracle's answer.
import { attention } from './oracle.js';
import { random, seedOf } from './random.js';
import { cast } from './tensors.js';

/** All different from each other. */
const kDefaultSizes = { B: 2, H: 6, Hkv: 3, Tq: 5, Tk: 7, D: 8, Dv: 9 };

/**
 * One call: its tensors, options, and what the oracle answers, computed once and only when it is asked for.
 * `options` may be a function of (generator, sizes).
 */
export function attentionCase(name, sizes, options = {}, { dtype = 'float32', change, ...rest } = {}) {
  const generator = random(seedOf(name));
  const s = { ...kDefaultSizes, ...sizes };
  const shape = (heads, length, size) => {
    if (s.rank === 2) return [length, size];
    if (s.rank === 3) return [heads, length, size];
    return s.layout === 'bthd' ? [s.B, length, heads, size] : [s.B, heads, length, size];
  };
  const types = Array.isArray(dtype) ? dtype : [dtype, dtype, dtype];
  const tensors = [
    generator.tensor(shape(s.H, s.Tq, s.D)),
    generator.tensor(shape(s.Hkv, s.Tk, s.D)),
    generator.tensor(shape(s.Hkv, s.Tk, s.Dv)),
  ];
  change?.(...tensors, generator);
  const [q, k, v] = tensors.map((tensor, n) => cast(tensor, types[n]));
  const chosen = typeof options === 'function' ? options(generator, s) : { ...options };
  if (s.layout) chosen.layout = s.layout;
  let answer;
  return {
    name,
    q,
    k,
    v,
    options: chosen,
    outputType: types[0],
    get expected() {
      answer ??= attention(q, k, v, chosen);
      return answer;
    },
    ...rest,
  };
}
