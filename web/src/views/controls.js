// Text, tokens, model and switches: what the reader changes.
import { headsWith } from '../roles.js';
import { kHeadChoices } from '../state.js';
import { byId, element } from './element.js';
import { formatCount } from './format.js';

/** @import { HeadName, HeadScores, ModelInfo, Run } from '../types.js' */
/** @import { ShownStore } from '../shown.js' */
/** @import { State, Store } from '../state.js' */

/** Texts on which the heads of the trained model show what they do. */
const kTexts = {
  'Repeated words': 'blue seven window candle river stone. blue seven window candle river',
  'Made-up words': 'Zorblat quim vexil. Zorblat quim',
  Names: 'Mr. Darcy and Miss Bingley walked to Netherfield; Elizabeth was not pleased when Mr. Darcy and Miss',
  Prose:
    'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife.',
};

/** @param {Store} store @param {ShownStore} shown */
export function createControls(store, shown) {
  const text = /** @type {HTMLTextAreaElement} */ (byId('text'));
  const causal = /** @type {HTMLInputElement} */ (byId('causal'));
  const rope = /** @type {HTMLInputElement} */ (byId('rope'));
  text.addEventListener('input', () => store.set({ text: text.value }));
  causal.addEventListener('change', () => store.set({ causal: causal.checked }));
  rope.addEventListener('change', () => store.set({ rope: rope.checked }));
  byId('reseed').addEventListener('click', () => store.set({ seed: store.state.seed + 1 }));
  for (const [name, example] of Object.entries(kTexts)) {
    const button = element('button', { type: 'button', className: 'link' }, name);
    button.addEventListener('click', () => store.set({ text: example, locked: false }));
    byId('examples').append(' ', button);
  }
  const twice = element('button', { type: 'button', className: 'link', id: 'twice' }, 'Your text twice');
  twice.addEventListener('click', () => store.set(repeated(store.state, shown.state.scores)));
  byId('examples').append(' ', twice);
  const models = /** @type {HTMLInputElement[]} */ ([...document.querySelectorAll('input[name=model]')]);
  for (const radio of models) {
    radio.addEventListener('change', () => store.set({ model: /** @type {State['model']} */ (radio.value) }));
  }
  const radios = kHeadChoices.map((heads) => {
    const input = element('input', { type: 'radio', name: 'heads', value: String(heads) });
    input.addEventListener('change', () => store.set({ heads }));
    byId('heads').append(element('label', {}, input, element('span', { className: 'number' }, String(heads))));
    return input;
  });
  shown.subscribe(({ run, model }, changed) => {
    if (run && changed.has('run')) byId('token-count').textContent = countNote(run, model);
  });

  return {
    /** @param {State} state */
    show(state) {
      if (text.value !== state.text) text.value = state.text;
      causal.checked = state.causal;
      rope.checked = state.rope;
      for (const radio of models) radio.checked = radio.value === state.model;
      for (const radio of radios) radio.checked = Number(radio.value) === state.heads;
      byId('seed').textContent = String(state.seed);
      const isUntrained = state.model === 'untrained';
      hide('.untrained', !isUntrained);
      hide('.language', isUntrained);
      hide('.austen', state.model !== 'trained');
    },
    /** Lets the reader's own model be chosen. */
    offerOwn() {
      byId('model-own').hidden = false;
    },
  };
}

/**
 * The test of an induction head on any text: the text once more behind itself, and the head that should copy.
 * @param {State} state @param {HeadScores | null} scores @returns {Partial<State>}
 */
function repeated({ text, at }, scores) {
  const score = (/** @type {HeadName} */ [layer, head]) => scores?.induction[layer][head] ?? 0;
  const [head = at] = scores ? headsWith(scores, 'induction').sort((a, b) => score(b) - score(a)) : [];
  const once = text.trim();
  return { text: `${once} ${once}`, at: head, combine: 'one', show: 'weights', locked: false };
}

/** @param {string} selector @param {boolean} isHidden */
function hide(selector, isHidden) {
  for (const node of document.querySelectorAll(selector)) node.toggleAttribute('hidden', isHidden);
}

/** @param {Run} run @param {ModelInfo | null} model null for the untrained layer */
function countNote({ tokens, prompt, total }, model) {
  const count = tokens.length;
  const limit = model?.trainedLength ?? null;
  const notes = [
    total > prompt
      ? `The first ${formatCount(prompt)} of ${formatCount(total)} tokens; the rest is left out.`
      : `${formatCount(total)} ${total === 1 ? 'token' : 'tokens'}.`,
    count > prompt ? `The model has written ${formatCount(count - prompt)} more.` : '',
    !model ? 'Split at spaces; a word is one token, and so is every other sign.' : '',
    limit && count <= limit ? `The model was trained on at most ${formatCount(limit)} tokens.` : '',
    limit && count > limit
      ? `That is past the ${formatCount(limit)} tokens that the model was trained on: what it does with those beyond means little.`
      : '',
  ];
  return notes.filter(Boolean).join(' ');
}

/** Light or dark; the choice outlives the visit. @param {() => void} changed */
export function createThemeSwitch(changed) {
  const root = document.documentElement;
  const name = byId('theme-name');
  const show = () => {
    name.textContent = root.dataset.theme === 'dark' ? 'Light' : 'Dark';
    changed();
  };
  const isChosen = () => {
    try {
      return localStorage.getItem('theme') !== null;
    } catch {
      return false;
    }
  };
  byId('theme').addEventListener('click', () => {
    root.dataset.theme = root.dataset.theme === 'dark' ? 'light' : 'dark';
    try {
      localStorage.setItem('theme', root.dataset.theme);
    } catch {
      // Storage may be forbidden; the choice then lasts for this visit.
    }
    show();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', ({ matches }) => {
    if (isChosen()) return;
    root.dataset.theme = matches ? 'dark' : 'light';
    show();
  });
  show();
}
