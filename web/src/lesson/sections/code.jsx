// 5. The module in code: to run, to change, and to compare.
import { useState } from 'preact/hooks';
import { plainAttention } from '../code/plain.js';
import { reference } from '../code/reference.js';
import { runModule } from '../code/run.js';
import { kModule, kPyTorch } from '../code/texts.js';
import { Section } from '../parts/section.jsx';

/** @import { Outcome } from '../code/run.js' */

/** Float32 against float64: larger differences come from another computation. */
const kClose = 1e-5;

export function Code() {
  return (
    <Section number={5} name="code" title="The same in code">
      <p>
        The whole module, with this package and below it in plain PyTorch. It runs here, on an input of 17 tokens and
        the parameters that PyTorch was given, too; its output is compared with PyTorch’s own, which was stored in
        double precision, and with plain arithmetic in this page. Change it and run it again: without <code>rope</code>,
        say, or with 4 heads.
      </p>
      <Pane />
    </Section>
  );
}

function Pane() {
  const [code, setCode] = useState(kModule);
  const [outcome, setOutcome] = useState(/** @type {Outcome | null} */ (null));
  const [isRunning, setRunning] = useState(false);
  async function run() {
    setRunning(true);
    setOutcome(await runModule(code, { x: asPlain(reference.x), parameters: asPlain(reference.parameters) }));
    setRunning(false);
  }
  return (
    <div class="panel code-pane" id="code-pane">
      <div class="code-half">
        <label for="code-text">attention-wasm</label>
        <textarea
          id="code-text"
          class="code"
          rows={16}
          wrap="off"
          spellcheck={false}
          autocomplete="off"
          value={code}
          onInput={(event) => setCode(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            if (!isRunning) run();
          }}
        />
        <div class="buttons">
          <button type="button" class="plain strong" disabled={isRunning} onClick={run}>
            {isRunning ? 'Running …' : 'Run'}
          </button>
          <button type="button" class="plain" disabled={code === kModule} onClick={() => setCode(kModule)}>
            As it was
          </button>
          <span class="note">
            <kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it, too
          </span>
        </div>
        <div aria-live="polite" id="code-outcome">
          {outcome && <Result outcome={outcome} />}
        </div>
      </div>
      <details class="code-half">
        <summary>The same in plain PyTorch</summary>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keys */}
        <pre class="code" tabIndex={0}>
          {kPyTorch}
        </pre>
      </details>
    </div>
  );
}

/** Typed arrays as arrays, which a text can hold. @param {any} value @returns {any} */
function asPlain(value) {
  if (value.data) return { data: Array.from(value.data), shape: value.shape };
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, asPlain(each)]));
}

/** @param {{ outcome: Outcome }} props */
function Result({ outcome: { lines, output, error, milliseconds } }) {
  return (
    <>
      {lines.length > 0 && <pre class="code printed">{lines.join('\n')}</pre>}
      {error ? (
        <p class="failure">{error}</p>
      ) : (
        <p class="note number">Ran in {milliseconds.toFixed(0)} ms, loading included.</p>
      )}
      {!error && <Comparison output={output?.data ?? null} />}
    </>
  );
}

/** @param {{ output: Float32Array | null }} props */
function Comparison({ output }) {
  const size = reference.output.data.length;
  if (!output) return <p class="note">Nothing to compare: the module exports no tensor `output`.</p>;
  if (output.length !== size) {
    return (
      <p class="note number">
        The output has {output.length} numbers, PyTorch’s has {size}.
      </p>
    );
  }
  const plain = plainAttention(reference.x, reference.parameters, reference.heads);
  const rows = [
    { name: 'PyTorch, float64', want: reference.output.data },
    { name: 'Plain arithmetic in this page, float64', want: plain },
  ].map(({ name, want }) => ({ name, most: largestDifference(output, want) }));
  const agrees = rows.every(({ most }) => most < kClose);
  return (
    <table class="plain-table" id="comparison">
      <caption>
        Largest difference over {size} numbers: <b>{agrees ? 'they agree' : 'this computes something else'}</b>
      </caption>
      <tbody>
        {rows.map(({ name, most }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="number right">{most.toExponential(1).replace('-', '−')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** @param {ArrayLike<number>} got @param {ArrayLike<number>} want */
function largestDifference(got, want) {
  let most = 0;
  for (let i = 0; i < want.length; i++) {
    const difference = Math.abs(got[i] - want[i]);
    if (!(difference <= most)) most = difference;
  }
  return most;
}
