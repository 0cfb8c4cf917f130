// On narrow screens the instrument shows the tokens and one matrix; the rest of it opens on a tap.
import { byId, element } from '../views/element.js';

/** What is in a part that the instrument folds by itself where it is narrow. @type {Readonly<Record<string, string>>} */
const kInside = { heads: '.head-grid', row: '.row-block' };

const kParts = { text: 'Text', heads: 'Heads', row: 'Row', all: 'All' };

export function createFold() {
  const page = byId('stage');
  const buttons = Object.entries(kParts).map(([name, label]) => {
    const button = element('button', { type: 'button', 'aria-pressed': 'false' }, label);
    button.addEventListener('click', () => open(page.dataset.open === name ? null : name));
    return { name, button };
  });

  /** @param {string | null} wanted */
  function open(wanted) {
    if (wanted) page.dataset.open = wanted;
    else delete page.dataset.open;
    for (const part of /** @type {NodeListOf<HTMLDetailsElement>} */ (page.querySelectorAll('details.fold'))) {
      // What the instrument folds by itself is open at once when it is asked for here.
      if (wanted && kInside[wanted] && part.querySelector(kInside[wanted])) part.open = true;
    }
    page.scrollTop = 0;
    for (const { name, button } of buttons) button.setAttribute('aria-pressed', String(name === wanted));
  }
  const bar = byId('fold-bar');
  bar.setAttribute('role', 'group');
  bar.setAttribute('aria-label', 'Parts of the instrument');
  bar.append(...buttons.map(({ button }) => button));
}
