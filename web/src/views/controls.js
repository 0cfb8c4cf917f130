// Text, tokens, model and switches: what the reader changes.
import { kHeadChoices } from '../state.js';
import { byId, element } from './element.js';

/** @import { ModelInfo, Run } from '../types.js' */
/** @import { State, Store } from '../state.js' */

/** Texts on which the heads of the trained model show what they do. */
const kTexts = {
  'Repeated words': 'blue seven window candle river stone. blue seven window candle river',
  'Made-up words': 'Zorblat quim vexil. Zorblat quim',
  Names: 'Mr. Darcy and Miss Bingley walked to Netherfield; Elizabeth was not pleased when Mr. Darcy and Miss',
  Prose:
    'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife.',
};

/** @param {Store} store */
export function createControls(store) {
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
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') store.set({ locked: false });
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

/** @param {string} selector @param {boolean} isHidden */
function hide(selector, isHidden) {
  for (const node of document.querySelectorAll(selector)) node.toggleAttribute('hidden', isHidden);
}

/** @param {number} shown @param {number} total @param {ModelInfo | null} model null for the untrained layer */
function countNote(shown, total, model) {
  const limit = model?.trainedLength ? ` The model was trained on at most ${model.trainedLength} tokens.` : '';
  if (total > shown) return `The first ${shown} of ${total} tokens; the rest is left out.${limit}`;
  const rule = model ? limit : ' Split at spaces; a word is one token, and so is every other sign.';
  return `${total} ${total === 1 ? 'token' : 'tokens'}.${rule}`;
}

export function createTokenStrip() {
  const list = byId('tokens');
  return {
    /** @param {Run} run @param {ModelInfo | null} model */
    show({ tokens, total }, model) {
      byId('token-count').textContent = countNote(tokens.length, total, model);
      list.replaceChildren(
        ...tokens.map((token, i) =>
          element('li', {}, element('span', {}, token), element('span', { className: 'number index' }, String(i))),
        ),
      );
      // A strip that scrolls has to be reachable by keys; one that doesn't would only be one more stop.
      if (list.scrollHeight > list.clientHeight) list.tabIndex = 0;
      else list.removeAttribute('tabindex');
    },
    /** @param {State} state */
    mark({ focus }) {
      for (const [i, item] of [...list.children].entries()) {
        item.classList.toggle('asks', i === focus.row);
        item.classList.toggle('asked', i === focus.column);
      }
    },
  };
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
