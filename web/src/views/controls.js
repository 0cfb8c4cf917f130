// Text, tokens and switches: what the reader changes.
import { kHeadChoices } from '../state.js';
import { kMostTokens } from '../tokens.js';
import { byId, element } from './element.js';

/** @typedef {import('../state.js').Store} Store */
/** @typedef {import('../state.js').State} State */

/** @param {Store} store */
export function createControls(store) {
  const text = /** @type {HTMLTextAreaElement} */ (byId('text'));
  const causal = /** @type {HTMLInputElement} */ (byId('causal'));
  const rope = /** @type {HTMLInputElement} */ (byId('rope'));
  text.addEventListener('input', () => store.set({ text: text.value }));
  causal.addEventListener('change', () => store.set({ causal: causal.checked }));
  rope.addEventListener('change', () => store.set({ rope: rope.checked }));
  byId('reseed').addEventListener('click', () => store.set({ seed: store.state.seed + 1 }));
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
      for (const radio of radios) radio.checked = Number(radio.value) === state.heads;
      byId('seed').textContent = String(state.seed);
    },
  };
}

export function createTokenStrip() {
  const list = byId('tokens');
  return {
    /** @param {string[]} tokens @param {number} total how many the text has */
    show(tokens, total) {
      byId('token-count').textContent =
        total > tokens.length
          ? `The first ${kMostTokens} of ${total} tokens.`
          : `${total} ${total === 1 ? 'token' : 'tokens'}.`;
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
