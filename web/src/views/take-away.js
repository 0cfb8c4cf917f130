// The chosen head to take away: its matrix as a picture and as numbers.
import { byId } from './element.js';
import { headWeights } from './focus-map.js';
import { themeColors } from './theme-colors.js';

/** @import { Run } from '../types.js' */
/** @import { Store } from '../state.js' */

/** @param {Store} store @param {() => Run | null} getRun */
export function createTakeAway(store, getRun) {
  const fileName = (/** @type {string} */ ending) => `attention-L${store.state.at[0]}H${store.state.at[1]}.${ending}`;
  byId('save-png').addEventListener('click', () => {
    picture().toBlob((blob) => {
      if (blob) save(blob, fileName('png'));
    });
  });
  byId('save-json').addEventListener('click', () => {
    const run = getRun();
    if (run) save(new Blob([JSON.stringify(numbers(run))], { type: 'application/json' }), fileName('json'));
  });

  /** @param {Run} run */
  function numbers(run) {
    const { model, text, at, off } = store.state;
    const { tokens, ids, causal } = run;
    const weights = headWeights(run, store.state);
    const T = tokens.length;
    const rows = Array.from({ length: T }, (_, row) => Array.from(weights.subarray(row * T, (row + 1) * T)));
    return { model, text, layer: at[0], head: at[1], countedFrom: 0, off, causal, tokens, ids, weights: rows };
  }
}

/** The matrix with its marks, on the ground of the page. */
function picture() {
  const layers = /** @type {HTMLCanvasElement[]} */ ([...byId('map').children]);
  const canvas = document.createElement('canvas');
  canvas.width = layers[0].width;
  canvas.height = layers[0].height;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.fillStyle = themeColors().ground;
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const layer of layers) context.drawImage(layer, 0, 0);
  return canvas;
}

/** @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
