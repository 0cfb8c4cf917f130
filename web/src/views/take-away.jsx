// What is shown, to take away: pictures, numbers, and the program that gives them again.
import { useState } from 'preact/hooks';
import { kSettings } from '../state.js';
import { csvOf, jsonOf, kKinds, nameOf } from './exports.js';
import { Fold } from './parts.jsx';
import { rasterOf, save, textFile } from './saving.js';
import { snippetOf } from './snippet.js';
import { layerSnippetOf } from './snippet-layer.js';
import { svgOf } from './svg.js';
import { useStore } from './use-store.js';

/** @import { Given, Kind } from './exports.js' */
/** @import { State } from '../state.js' */
/** @import { MatrixView, ModelInfo, Run } from '../types.js' */
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
  const { model } = useStore(store, 'model');
  const { matrix } = useStore(shown, 'matrix');
  if (!matrix) return null;
  /** @param {Format} format */
  async function take(format) {
    try {
      setMessage('');
      const lens = chosen === 'lens' ? await session.lensAt(store.state.focus.row) : [];
      const given = /** @type {Given} */ ({ state: store.state, shown: shown.state, session, lens });
      save(await blobOf(chosen, format, given), `${nameOf(chosen, given)}.${format}`);
    } catch (error) {
      setMessage(`Not saved: ${error instanceof Error ? error.message : error}.`);
    }
  }
  const isLanguage = model !== 'untrained';
  const kinds = kKinds.filter((each) => isLanguage || (each.kind !== 'next' && each.kind !== 'lens'));
  const chosen = kinds.find((each) => each.kind === kind)?.kind ?? 'matrix';
  return (
    <Fold title="Take it away" id="take-away" isOpen={isOpen} onToggle={setIsOpen}>
      <div class="buttons">
        <div class="choice">
          <label for="take-what">What</label>
          <select
            id="take-what"
            value={chosen}
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
      {isOpen && <Program app={app} />}
    </Fold>
  );
}

/** @param {{ app: App }} props */
function Program({ app: { store, shown } }) {
  const state = useStore(store, 'focus', ...kSettings);
  const { run, view, model } = useStore(shown, 'run', 'view', 'model');
  if (!run || !view) return null;
  return (
    <>
      <h3>The same numbers in your own program</h3>
      <p>
        {'A module for Node, with the package '}
        <code>attention-wasm</code>
        <Needed model={state.model} />
      </p>
      <Snippet text={programOf(state, run, view, model)} />
    </>
  );
}

/** @param {State} state @param {Run} run @param {MatrixView} view @param {ModelInfo | null} model */
function programOf(state, run, view, model) {
  if (model) return snippetOf(state, run, view, model);
  return run.layer ? layerSnippetOf(state, { ...run, layer: run.layer }, view) : '';
}

/** What the program takes besides the package, and what it gives. @param {{ model: State['model'] }} props */
function Needed({ model }) {
  if (model === 'untrained')
    return ' alone: it draws the same projections from the seed. It prints the row in focus and the layer’s output there.';
  if (model === 'own') return ' and your model’s files. It prints the row in focus and the likeliest next tokens.';
  return (
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
  if (format === 'csv') return textFile(csvOf(kind, given), 'text/csv');
  if (format === 'json') return textFile(jsonOf(kind, given), 'application/json');
  const svg = new Blob([await svgOf(kind, given)], { type: 'image/svg+xml' });
  return format === 'svg' ? svg : rasterOf(svg);
}
