// What is shown, to take away: pictures, numbers, and the program that gives them again.
import { useState } from 'preact/hooks';
import { kSettings } from '../state.js';
import { csvOf, jsonOf, kKinds, nameOf, tableOf } from './exports.js';
import { Fold } from './parts.jsx';
import { snippetOf } from './snippet.js';
import { svgOf } from './svg.js';
import { useStore } from './use-store.js';

/** @import { Given, Kind } from './exports.js' */
/** @import { App } from './use-store.js' */

/** @typedef {'png' | 'svg' | 'csv' | 'json'} Format */

const kFormats = /** @type {readonly { format: Format, label: string }[]} */ ([
  { format: 'png', label: 'PNG' },
  { format: 'svg', label: 'SVG' },
  { format: 'csv', label: 'CSV' },
  { format: 'json', label: 'JSON' },
]);
const kModelFiles = [
  { name: 'config.json', url: new URL('../../model/config.json', import.meta.url) },
  { name: 'model.safetensors', url: new URL('../../model/model.safetensors', import.meta.url) },
];

/** @param {{ app: App }} props */
export function TakeAway({ app }) {
  const { store, shown, session } = app;
  const [kind, setKind] = useState(/** @type {Kind} */ ('matrix'));
  const [message, setMessage] = useState('');
  const [isOpen, setIsOpen] = useState(false);
  const state = useStore(store, 'focus', ...kSettings);
  const { run, matrix, view, model, candidates } = useStore(shown, 'matrix', 'candidates');
  if (!run || !matrix || !view) return null;
  /** @param {Format} format */
  async function take(format) {
    const given = /** @type {Given} */ ({ state: store.state, shown: shown.state, session });
    try {
      setMessage('');
      save(await blobOf(kind, format, given), `${nameOf(kind, given)}.${format}`);
    } catch (error) {
      setMessage(`Not saved: ${error instanceof Error ? error.message : error}.`);
    }
  }
  const kinds = kKinds.filter((each) => each.kind !== 'next' || candidates.length > 0);
  return (
    <Fold title="Take it away" id="take-away" isOpen={isOpen} onToggle={setIsOpen}>
      <div class="buttons">
        <div class="choice">
          <label for="take-what">What</label>
          <select
            id="take-what"
            value={kind}
            onChange={(event) => setKind(/** @type {Kind} */ (event.currentTarget.value))}
          >
            {kinds.map((each) => (
              <option key={each.kind} value={each.kind}>
                {each.label}
              </option>
            ))}
          </select>
        </div>
        {kFormats.map(({ format, label }) => (
          <button type="button" class="plain" key={format} onClick={() => take(format)}>
            {label}
          </button>
        ))}
      </div>
      <p class="note" role="status">
        {message ||
          'The address of this page holds everything that is chosen here: copy it to show the same to someone else.'}
      </p>
      {model && isOpen && (
        <>
          <h3>The same numbers in your own program</h3>
          <p>
            {'A module for Node, with the package '}
            <code>attention-wasm</code>
            {state.model === 'trained' ? (
              <>
                {' and the model’s '}
                {kModelFiles.map(({ name, url }, i) => (
                  <span key={name}>
                    {i > 0 && ' and '}
                    <a href={url.href} download={name}>
                      {name}
                    </a>
                  </span>
                ))}
                {'. It prints the row in focus and the likeliest next tokens.'}
              </>
            ) : (
              ' and your model’s files. It prints the row in focus and the likeliest next tokens.'
            )}
          </p>
          <Snippet text={snippetOf(state, run, view, model)} />
        </>
      )}
    </Fold>
  );
}

/** @param {{ text: string }} props */
function Snippet({ text }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), 2000);
  };
  return (
    <>
      <div class="buttons">
        <button type="button" class="plain" onClick={copy}>
          {isCopied ? 'Copied' : 'Copy'}
        </button>
        <button
          type="button"
          class="plain"
          onClick={() => save(new Blob([text], { type: 'text/javascript' }), 'attention.mjs')}
        >
          Save as a file
        </button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
      <pre class="snippet" id="snippet" tabIndex={0}>
        <code>{text}</code>
      </pre>
    </>
  );
}

/** @param {Kind} kind @param {Format} format @param {Given} given @returns {Promise<Blob>} */
async function blobOf(kind, format, given) {
  if (format === 'csv') return new Blob([csvOf(await tableOf(kind, given))], { type: 'text/csv' });
  if (format === 'json') return new Blob([JSON.stringify(await jsonOf(kind, given))], { type: 'application/json' });
  const svg = new Blob([svgOf(kind, given)], { type: 'image/svg+xml' });
  return format === 'svg' ? svg : rasterOf(svg);
}

const kPixels = 2; // for each unit of the drawing

/** @param {Blob} svg @returns {Promise<Blob>} */
async function rasterOf(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = kPixels * image.width;
  canvas.height = kPixels * image.height;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the picture is too large'))));
  });
}

/** @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
