// The logit lens.
/** @import { Context, Operand } from '../check.js' */
/** @import { Float32Result } from '../types.js' */
/** @import { Model } from './forward.js' */

const kFloat = 4;

/**
 * The final norm and the last projection of any hidden state.
 * @param {Model} model @param {Context} context @param {Operand} hidden [..., width]
 * @returns {Float32Result}
 */
export function lens({ config, parts, steps }, { fn }, hidden) {
  const { width, vocabulary } = config;
  const rows = hidden.count / width;
  const at = { x: 0, y: 0, logits: 0, scratch: 0 };
  const frame = steps.frame(fn, at);
  frame.float32('x', hidden);
  frame.place('y', hidden.count * kFloat);
  frame.place('logits', rows * vocabulary * kFloat);
  frame.place('scratch', steps.linearScratch(rows, vocabulary, [width]));
  return frame.run(
    1,
    () => {
      steps.norm(rows, width, config, at.x, parts.norm, at.y);
      steps.linear(rows, parts.head, at.y, at.logits, 0, at.scratch);
    },
    () => frame.floats('logits', { shape: [...hidden.shape.slice(0, -1), vocabulary], count: rows * vocabulary }),
  );
}
