// What a head is called: by its averages over the probes, and only where one is high.

/** @import { HeadName, HeadScores } from './types.js' */
/** @typedef {'induction' | 'previous token' | 'itself' | 'first token' | 'no clear role'} Role */

const kLeast = { induction: 0.5, previous: 0.75, itself: 0.6, first: 0.4 };

/** @param {HeadScores} scores @param {HeadName} head @returns {Role} */
export function roleOf(scores, [layer, head]) {
  const high = (/** @type {keyof typeof kLeast} */ kind) => scores[kind][layer][head] >= kLeast[kind];
  // An idle induction head rests on the first token: what it does when it has work comes first.
  if (high('induction')) return 'induction';
  if (high('previous')) return 'previous token';
  if (high('itself')) return 'itself';
  return high('first') ? 'first token' : 'no clear role';
}

/** @param {HeadScores} scores @param {Role} role @returns {HeadName[]} */
export function headsWith(scores, role) {
  return scores.previous
    .flatMap((layer, l) => layer.map((_, h) => /** @type {HeadName} */ ([l, h])))
    .filter((head) => roleOf(scores, head) === role);
}
