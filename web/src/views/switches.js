// Heads off and on, alone and in groups, and what that does to the model.
import { headsWith } from '../roles.js';
import { headName, orderedHeads, sameHead } from '../state.js';
import { byId } from './element.js';
import { formatPercent } from './format.js';

/** @import { Effect, HeadName, HeadScores } from '../types.js' */
/** @import { State, Store } from '../state.js' */
/** @import { Role } from '../roles.js' */

/** @typedef {{ before: Effect | null, after: Effect | null }} Effects null where it is being measured */

/** @param {Store} store */
export function createSwitches(store) {
  const single = /** @type {HTMLInputElement} */ (byId('head-on'));
  const groups = [
    { button: byId('off-induction'), role: /** @type {Role} */ ('induction'), name: 'induction heads' },
    { button: byId('off-previous'), role: /** @type {Role} */ ('previous token'), name: 'previous-token heads' },
  ];
  const allOn = /** @type {HTMLButtonElement} */ (byId('all-on'));
  /** @type {HeadScores | null} */
  let known = null;

  /** @param {readonly HeadName[]} heads @param {boolean} isOff */
  function change(heads, isOff) {
    const others = store.state.off.filter((each) => !heads.some((head) => sameHead(head, each)));
    store.set({ off: isOff ? orderedHeads([...others, ...heads]) : others });
  }
  single.addEventListener('change', () => change([store.state.at], !single.checked));
  for (const { button, role } of groups) {
    button.addEventListener('click', () => {
      if (known) change(headsWith(known, role), button.getAttribute('aria-pressed') !== 'true');
    });
  }
  allOn.addEventListener('click', () => store.set({ off: [] }));

  return {
    /** @param {State} state @param {HeadScores | null} scores */
    show({ at, off }, scores) {
      known = scores;
      const isOff = (/** @type {HeadName} */ head) => off.some((each) => sameHead(each, head));
      single.checked = !isOff(at);
      byId('head-on-name').textContent = `${headName(at)} on`;
      allOn.disabled = off.length === 0;
      for (const { button, role, name } of groups) {
        const heads = scores ? headsWith(scores, role) : [];
        /** @type {HTMLButtonElement} */ (button).disabled = heads.length === 0;
        button.setAttribute('aria-pressed', String(heads.length > 0 && heads.every(isOff)));
        button.textContent = `All ${heads.length || ''} ${name} off`.replace(/ +/g, ' ');
      }
      byId('off-list').textContent = off.length ? `Off: ${off.map(headName).join(', ')}.` : 'All heads are on.';
    },

    /** @param {Effects} effects @param {boolean} isChanged whether any head is off */
    showEffects({ before, after }, isChanged) {
      const text = (/** @type {Effect | null} */ effect, /** @type {(effect: Effect) => string} */ format) =>
        effect ? format(effect) : 'measuring …';
      const copying = (/** @type {Effect} */ effect) => formatPercent(effect.copying);
      const loss = (/** @type {Effect} */ effect) => (effect.loss === null ? '–' : effect.loss.toFixed(3));
      byId('copying-before').textContent = text(before, copying);
      byId('loss-before').textContent = text(before, loss);
      byId('copying-after').textContent = isChanged ? text(after, copying) : '–';
      byId('loss-after').textContent = isChanged ? text(after, loss) : '–';
      byId('effect-sample').textContent = before
        ? `Measured here on ${before.copied} tokens of repeated random runs and ${before.lossTokens} tokens of Austen that the model was not trained on.`
        : '';
    },
  };
}
