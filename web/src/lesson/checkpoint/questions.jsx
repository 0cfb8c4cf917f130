// The questions: some about attention as such, some made from the reader's own sentence and judged by the kernel's numbers.

import { largest } from '../../engine/matrix.js';
import { hashText } from '../../engine/random.js';
import { visibleKeys } from '../../engine/rules.js';
import { headName } from '../../state.js';
import { fixed, rowOf } from '../numbers.js';

/** @import { HeadSteps } from '../engine/steps.js' */
/** @import { ScaleResult } from '../engine/experiments.js' */
/** @import { Question } from './question.jsx' */

export const kQuestionNames = ['cost', 'heaviest', 'mask', 'shift', 'saturation', 'cache'];

/** @type {Question} */
export const costQuestion = {
  name: 'cost',
  asks: 'How does the cost of standard self-attention grow with the sequence length T?',
  options: [
    {
      text: 'Time O(T·d), weights O(T)',
      says: 'Each of T queries meets each of T keys: that is more than T products.',
    },
    { text: 'Time O(T²·d), weights O(T²)' },
    {
      text: 'Time O(T³), weights O(T²)',
      says: 'There are T² pairs, and each costs d, not T. Measure it: what happens to the time when T doubles?',
    },
    {
      text: 'Time O(T·d²), weights O(d²)',
      says: 'That is what the projections cost. The scores have a row and a column for each token.',
    },
  ],
  right: 1,
  explains:
    'T² pairs of d products each, and T² weights. A fused kernel does the same work but never holds the weights: its memory grows with T alone, as the measurement shows.',
};

const kMostTried = 100;

/** A row of the reader's text that has something to guess. @param {HeadSteps} steps @returns {number} */
function rowToGuess({ tokens, weights, at: head }) {
  const T = tokens.length;
  const step = Math.ceil(T / kMostTried);
  const rows = Array.from({ length: Math.max(0, Math.ceil((T - 4) / step)) }, (_, i) => 4 + i * step);
  if (rows.length === 0) return T - 1;
  const best = (/** @type {number} */ row) => largest(rowOf(weights, row));
  const clear = rows.filter((row) => best(row) > 0.4 && rowOf(weights, row).indexOf(best(row)) > 0);
  const from = clear.length > 0 ? clear : rows;
  return from[hashText(`${tokens.join(' ')} ${head}`) % from.length];
}

/** Which key gets most weight? @param {HeadSteps} steps @returns {Question & { row: number }} */
export function heaviestQuestion(steps) {
  const { tokens, weights } = steps;
  const row = rowToGuess(steps);
  const values = rowOf(weights, row);
  const [first, last] = visibleKeys(steps.rule, row, tokens.length);
  const order = Array.from({ length: last - first + 1 }, (_, j) => first + j).sort((a, b) => values[b] - values[a]);
  const [best] = order;
  const others = [row, row - 1, 0, ...order.slice(1)].filter(
    (j, i, all) => j >= first && j !== best && all.indexOf(j) === i,
  );
  const keys = [best, ...others.slice(0, 3)].sort((a, b) => a - b);
  const name = (/** @type {number} */ j) => `${j} “${tokens[j]}”`;
  return {
    row,
    name: 'heaviest',
    about: JSON.stringify([tokens, steps.at, row]),
    asks: `In your sentence, which token gets most of the weight when ${name(row)} asks, in head ${headName(steps.at)}?`,
    options: keys.map((j) => ({
      text: name(j),
      says: `The kernel gave ${name(j)} a weight of ${fixed(values[j])}: another one has more.`,
    })),
    right: keys.indexOf(best),
    explains: `The kernel gave ${name(best)} ${fixed(values[best])}; ${keys
      .filter((j) => j !== best)
      .map((j) => `${name(j)} ${fixed(values[j])}`)
      .join(', ')}.`,
  };
}

/** How many keys does a row see? @param {HeadSteps} steps @returns {Question} */
export function maskQuestion(steps) {
  const T = steps.tokens.length;
  const row = Math.max(0, Math.min(T - 1, Math.floor(T / 2)));
  const counts = [...new Set([row, row + 1, T - row, T])].sort((a, b) => a - b);
  return {
    name: 'mask',
    about: JSON.stringify([T, row]),
    asks: `Your text has ${T} tokens, counted from 0. Under the causal mask, how many of them does token ${row}, “${steps.tokens[row]}”, see?`,
    options: counts.map((count) => ({
      text: String(count),
      says: count === row ? 'It sees itself, too.' : 'It sees those before it and itself, and none behind.',
    })),
    right: counts.indexOf(row + 1),
    explains: `The keys 0 to ${row}: row ${row} of the weights has ${row + 1} numbers that may differ from 0${steps.rule.causal ? `, and they add up to ${fixed(rowOf(steps.weights, row).reduce((sum, weight) => sum + weight, 0))}` : ''}.`,
  };
}

/** @param {HeadSteps} steps @param {{ row: number, column: number }} cell @param {number[] | null} scores before and after @returns {Question} */
export function shiftQuestion(steps, { row, column }, scores) {
  const name = (/** @type {number} */ j) => `${j} “${steps.tokens[j]}”`;
  const measured = scores ? ` The kernel: ${fixed(scores[0], 4)} before, ${fixed(scores[1], 4)} after.` : '';
  return {
    name: 'shift',
    about: JSON.stringify([steps.tokens, steps.at]),
    asks: `Put 50 other tokens before your text. Query ${name(row)} and key ${name(column)} keep their vectors; RoPE turns both further. What happens to their score?`,
    options: [
      { text: 'It grows', says: 'Both turn by the same angle, so the angle between them doesn’t change.' },
      { text: 'It shrinks', says: 'Both turn by the same angle, so the angle between them doesn’t change.' },
      { text: 'It stays the same' },
    ],
    right: 2,
    explains: `Only the distance counts, and that is still ${row - column}.${measured}`,
  };
}

/** @param {ScaleResult | undefined} widest @returns {Question} */
export function saturationQuestion(widest) {
  return {
    name: 'saturation',
    asks: 'Queries and keys of 512 random numbers, 64 keys, not divided by √dₖ. How do the rows look?',
    options: [
      {
        text: 'Even: all keys get about 1/64',
        says: 'That would be so with scores that hardly differ. These spread by √512, about 23.',
      },
      { text: 'One key takes nearly everything' },
      {
        text: 'A few keys share',
        says: 'With the factor it is rather like that. Without it, scores spread by √512, about 23.',
      },
    ],
    right: 1,
    explains: widest
      ? `The kernel’s rows have an entropy of ${fixed(widest.plain.entropy)} nats, and their largest weight is ${fixed(widest.plain.largest)} on average; divided by √d: ${fixed(widest.scaled.entropy)} and ${fixed(widest.scaled.largest)}. The gradient that is left: ${fixed(widest.plain.slope)} against ${fixed(widest.scaled.slope)}.`
      : 'Scores spread by √512, about 23: e²³ lies between neighbours.',
  };
}

/** @param {HeadSteps} steps @returns {Question} */
export function cacheQuestion({ heads, kvHeads, at: head }) {
  const share = heads / kvHeads;
  return {
    name: 'cache',
    about: JSON.stringify([heads, kvHeads, head]),
    asks: `The layer in the instrument has ${heads} query heads on ${kvHeads} key/value ${kvHeads === 1 ? 'head' : 'heads'}. Against one key/value head for each query head, its cache of keys and values is`,
    options: [
      {
        text: share === 1 ? 'half as large' : 'just as large',
        says: `It keeps ${kvHeads} heads for each token, where MHA keeps ${heads}.`,
      },
      { text: share === 1 ? 'just as large' : `${share} times smaller` },
      {
        text: `${Math.max(2, share) ** 2} times smaller`,
        says: `It keeps ${kvHeads} heads for each token, where MHA keeps ${heads}: count them.`,
      },
    ],
    right: 1,
    explains: `Keys and values of ${kvHeads} heads instead of ${heads} are kept for each token and layer. The queries aren’t kept, so their number doesn’t matter.`,
  };
}
