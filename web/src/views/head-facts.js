// The chosen head in words: what it is called, and the averages behind that.
import { roleOf } from '../roles.js';
import { headName, sameHead } from '../state.js';
import { byId, element } from './element.js';

/** @import { HeadScores } from '../types.js' */
/** @import { State } from '../state.js' */

/** @param {State} state @param {HeadScores | null} scores null where the model has none, or not yet */
export function showHeadFacts({ at, off }, scores) {
  const [layer, head] = at;
  const isOff = off.some((each) => sameHead(each, at));
  byId('head-title').replaceChildren(
    element('b', {}, headName(at)),
    scores ? ` · ${roleOf(scores, at)}` : '',
    isOff ? ' · off' : '',
  );
  const value = (/** @type {number[][]} */ averages) => averages[layer][head].toFixed(2);
  byId('head-scores').textContent = scores
    ? `Average: token before ${value(scores.previous)} · induction ${value(scores.induction)} · ` +
      `itself ${value(scores.itself)} · first ${value(scores.first)}`
    : '';
}
