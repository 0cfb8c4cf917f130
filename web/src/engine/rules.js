// What a row of attention may see, and what hides the rest. For the worker and for the page.

/** @import { Rule, WhatIf } from '../types.js' */

/** The attention as a model was trained. @type {Readonly<WhatIf>} */
export const kAsTrained = { mask: true, scale: 1, temperature: 1, rotary: true, softcap: 0, window: -1 };

/** @param {WhatIf} change */
export const isAsTrained = (change) =>
  /** @type {(keyof WhatIf)[]} */ (Object.keys(kAsTrained)).every((name) => change[name] === kAsTrained[name]);

/** The first and the last key that a row sees. @param {Rule} rule @param {number} row @param {number} T @returns {[number, number]} */
export function visibleKeys({ causal, left, right }, row, T) {
  const first = left < 0 ? 0 : Math.max(0, row - left);
  const last = causal ? row : right < 0 ? T - 1 : Math.min(T - 1, row + right);
  return [first, last];
}

/** @param {Rule} rule @param {number} row @param {number} column @returns {string} empty where the row sees the key */
export function hiddenBy({ causal, left, right }, row, column) {
  if (causal && column > row) return 'the causal mask';
  const isOutside = (left >= 0 && row - column > left) || (right >= 0 && column - row > right);
  return isOutside ? 'the window' : '';
}

/** What at least one of several rules lets through. @param {readonly Rule[]} rules @returns {Rule} */
export function widest(rules) {
  const most = (/** @type {'left' | 'right'} */ side) =>
    rules.some((rule) => rule[side] < 0) ? -1 : Math.max(...rules.map((rule) => rule[side]));
  return { causal: rules.every(({ causal }) => causal), left: most('left'), right: most('right') };
}

/**
 * The rule of what is shown: that of a head's layer; of several heads, what any of them sees; of all layers one after the
 * other, windows reach from one to the next.
 * @param {readonly Rule[]} rules of the layers @param {{ combine: string, of: readonly (readonly [number, number])[] }} view
 */
export function ruleOf(rules, { combine, of }) {
  if (combine === 'rollout') return { ...widest(rules), left: -1, right: -1 };
  return widest(of.map(([layer]) => rules[layer]));
}

/** @typedef {{ scale: number, windowSize: readonly [number, number] }} Trained attention of a layer as it was trained */

/** One number for all layers can't stand for a scale that differs between them. @param {readonly Trained[]} trained */
export const hasOneScale = (trained) => trained.every(({ scale }) => scale === trained[0].scale);

/**
 * The `attention` of `Transformer.forward()` for a change; null for none.
 * @param {WhatIf} change @param {readonly Trained[]} trained
 */
export function attentionOptions({ mask, scale, temperature, rotary, softcap, window }, trained) {
  const options = {
    ...(!mask && { isCausal: false }),
    ...(scale !== 1 && hasOneScale(trained) && { scale: scale * trained[0].scale }),
    ...(temperature !== 1 && { temperature }),
    ...(softcap > 0 && { softcap }),
    ...(window >= 0 && { windowSize: /** @type {[number, number]} */ ([window, mask ? -1 : window]) }),
    ...(!rotary && { rope: false }),
  };
  return Object.keys(options).length > 0 ? options : null;
}

/**
 * How the logits of each layer come about under a change.
 * @param {WhatIf} change @param {readonly Trained[]} trained
 * @returns {{ scale: number, softcap: number, rule: Rule }[]}
 */
export function kindsOf({ mask, scale, temperature, softcap, window }, trained) {
  const factor = hasOneScale(trained) ? scale : 1;
  return trained.map((layer) => {
    const [left, right] = window >= 0 ? [window, mask ? -1 : window] : layer.windowSize;
    return {
      scale: (factor * layer.scale) / temperature,
      softcap: softcap / temperature,
      rule: { causal: mask, left, right },
    };
  });
}
