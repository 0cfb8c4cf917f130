// All heads of all layers as thumbnails: one is chosen, and its matrix is the one in focus.
import { roleOf } from '../roles.js';
import { headName, sameHead } from '../state.js';
import { byId, element } from './element.js';
import { drawThumbnail } from './thumbnail.js';

/** @import { HeadName, HeadScores, Run } from '../types.js' */
/** @import { State, Store } from '../state.js' */
/** @typedef {{ button: HTMLButtonElement, canvas: HTMLCanvasElement, role: HTMLElement, head: HeadName }} Thumbnail */

const kMove = /** @type {Record<string, readonly [number, number]>} */ ({
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
});

const kWrapAt = 4;

/** @param {Store} store */
export function createHeadGrid(store) {
  const grid = byId('head-grid');
  grid.setAttribute('role', 'radiogroup');
  grid.setAttribute('aria-label', 'Heads, a row for each layer');
  /** @type {Thumbnail[]} */
  let thumbnails = [];
  /** @type {{ run: Run, highest: number } | null} */
  let shown = null;

  /** @param {HeadName} head @returns {Thumbnail} */
  function createThumbnail(head) {
    const canvas = element('canvas', { 'aria-hidden': 'true' });
    const role = element('span', { className: 'role' });
    const button = element(
      'button',
      { type: 'button', className: 'thumbnail', role: 'radio' },
      canvas,
      element('b', {}, headName(head)),
      role,
    );
    button.addEventListener('click', () => store.set({ at: head }));
    button.addEventListener('keydown', (event) => {
      const move = kMove[event.key];
      if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const next = thumbnails.find((each) => sameHead(each.head, [head[0] + move[0], head[1] + move[1]]));
      if (!next) return;
      store.set({ at: next.head });
      next.button.focus();
    });
    return { button, canvas, role, head };
  }

  /** @param {Run} run */
  function ensureThumbnails({ layers, heads }) {
    const last = thumbnails.at(-1)?.head;
    if (last && sameHead(last, [layers - 1, heads - 1]) && thumbnails.length === layers * heads) return;
    thumbnails = Array.from({ length: layers * heads }, (_, i) => createThumbnail([Math.floor(i / heads), i % heads]));
    // The heads of a single layer wrap; those of several stand below one another.
    grid.style.setProperty('--columns', String(layers > 1 ? heads : Math.min(heads, kWrapAt)));
    grid.replaceChildren(...thumbnails.map(({ button }) => button));
  }

  function draw() {
    if (!shown) return;
    const { run, highest } = shown;
    const size = run.tokens.length ** 2;
    thumbnails.forEach(({ canvas }, i) => {
      drawThumbnail(canvas, run, run.weights.subarray(i * size, (i + 1) * size), highest);
    });
  }

  return {
    /** @param {Run} run @param {number} highest */
    show(run, highest) {
      shown = { run, highest };
      ensureThumbnails(run);
      draw();
    },
    /** @param {State} state @param {HeadScores | null} scores */
    mark({ at, off }, scores) {
      for (const { button, role, head } of thumbnails) {
        const isChosen = sameHead(at, head);
        const isOff = off.some((each) => sameHead(each, head));
        button.setAttribute('aria-checked', String(isChosen));
        button.tabIndex = isChosen ? 0 : -1;
        button.classList.toggle('off', isOff);
        role.textContent = isOff ? 'off' : scores ? roleOf(scores, head) : '';
      }
    },
    draw,
  };
}
