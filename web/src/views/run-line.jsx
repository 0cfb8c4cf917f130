// Time and build of the run, what ran, and what may run in its place: wasm or WebGPU.
import { formatBytes, formatCount, formatTime } from './format.js';
import { useStore } from './use-store.js';

/** @import { BuildInfo, ModelInfo } from '../types.js' */
/** @import { App } from './use-store.js' */

const kBuilds = { relaxed: 'relaxed SIMD', baseline: 'SIMD', scalar: 'no SIMD' };

/** @param {BuildInfo} info */
function buildName({ backend, simd, threads, adapter }) {
  if (backend === 'webgpu') return `WebGPU · ${adapter}`;
  const kind = kBuilds[/** @type {keyof typeof kBuilds} */ (simd)];
  return `${kind} · ${threads} ${threads === 1 ? 'thread' : 'threads'}`;
}

/** @param {BuildInfo} info */
const memoryFact = ({ backend, bytes, adapter }) =>
  `${formatBytes(bytes)} in use in the memory of ${backend === 'webgpu' ? `the GPU (${adapter})` : 'the wasm module'}.`;

/** Why there is nothing to choose, as far as it can be told without asking for a device. */
function missingGpu() {
  if (navigator.gpu) return '';
  return isSecureContext
    ? 'This browser has no WebGPU.'
    : 'WebGPU needs a secure context: a page that comes by https, or from this device.';
}

const kBackends = /** @type {const} */ ({ wasm: 'wasm', webgpu: 'WebGPU' });

/** @param {{ app: App }} props */
function BackendSwitch({ app }) {
  const { backend } = useStore(app.store, 'backend');
  const { gpuRefusal } = useStore(app.shown, 'gpuRefusal');
  const missing = missingGpu();
  const reason = gpuRefusal || missing;
  return (
    <fieldset class="segments compact backend" aria-describedby={reason ? 'gpu-refusal' : undefined}>
      <legend>Computed by</legend>
      <div>
        {Object.entries(kBackends).map(([name, title]) => (
          <label key={name}>
            <input
              type="radio"
              name="backend"
              value={name}
              checked={backend === name}
              disabled={name === 'webgpu' && missing !== ''}
              onChange={() => {
                app.shown.set({ gpuRefusal: '' });
                app.store.set({ backend: /** @type {keyof typeof kBackends} */ (name) });
              }}
            />
            <span>{title}</span>
          </label>
        ))}
      </div>
      {reason && (
        <p class="note" id="gpu-refusal" role="status">
          {reason}
        </p>
      )}
    </fieldset>
  );
}

/** @param {ModelInfo} info */
function modelFact({ name, parameters, layers, heads, kvHeads, width, vocabulary, fileBytes, memoryBytes }) {
  const millions = (parameters / 1e6).toFixed(parameters < 1e7 ? 2 : 0);
  return (
    `${name}: ${millions} M parameters, ${layers} layers of ${heads} query heads on ${kvHeads} key/value heads, width ` +
    `${width}, ${vocabulary} tokens; ${formatBytes(fileBytes)} of weights, ${formatBytes(memoryBytes)} in memory.`
  );
}

/** @param {{ app: App }} props */
export function RunLine({ app }) {
  return (
    <div class="run-line">
      <RunFacts app={app} />
      <BackendSwitch app={app} />
    </div>
  );
}

/** @param {{ app: App }} props */
function RunFacts({ app }) {
  const { run, build, model, isStored } = useStore(app.shown, 'run', 'build', 'model', 'isStored');
  if (!run || !build) {
    return (
      <details class="run">
        <summary id="run">{isStored ? 'A stored example, model to come' : 'Starting'}</summary>
        <ul id="reasons" />
      </details>
    );
  }
  const T = formatCount(run.tokens.length);
  const fact = model
    ? `T = ${T} tokens through ${modelFact(model)}`
    : `T = ${T} tokens, one layer of ${run.heads} heads: projections, scores, softmax and weighted values.`;
  return (
    <details class="run">
      <summary id="run">
        <b class="number">{formatTime(run.milliseconds)}</b>
        {` · ${buildName(build)}`}
      </summary>
      <ul id="reasons">
        {[fact, memoryFact(build), ...build.reasons].map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </details>
  );
}
