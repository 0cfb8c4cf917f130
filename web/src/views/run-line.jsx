// Time and build of the run, and what ran.
import { formatBytes, formatCount, formatTime } from './format.js';
import { useStore } from './use-store.js';

/** @import { BuildInfo, ModelInfo } from '../types.js' */
/** @import { App } from './use-store.js' */

const kBuilds = { relaxed: 'relaxed SIMD', baseline: 'SIMD', scalar: 'no SIMD' };

/** @param {BuildInfo} info */
function buildName({ backend, simd, threads }) {
  const kind = backend === 'wasm' ? kBuilds[/** @type {keyof typeof kBuilds} */ (simd)] : backend;
  return `${kind} · ${threads} ${threads === 1 ? 'thread' : 'threads'}`;
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
  const { run, build, model, isStored } = useStore(app.shown, 'run', 'build', 'model', 'isStored');
  if (!run || !build) {
    return (
      <details class="run">
        <summary id="run">{isStored ? 'A stored example, until the model is here' : 'Starting'}</summary>
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
        {[fact, ...build.reasons].map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </details>
  );
}
