// On narrow screens the instrument shows the tokens and one matrix; the rest of it opens on a tap.
import { byId, element } from '../views/element.js';

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
    page.scrollTop = 0;
    for (const { name, button } of buttons) button.setAttribute('aria-pressed', String(name === wanted));
  }
  const bar = byId('fold-bar');
  bar.setAttribute('role', 'group');
  bar.setAttribute('aria-label', 'Parts of the instrument');
  bar.append(...buttons.map(({ button }) => button));
}
