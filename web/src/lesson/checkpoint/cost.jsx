// Time and memory of attention, measured here: T doubles from 128 to 4096.
import { useState } from 'preact/hooks';
import { useLesson } from '../context.js';
import { bytesText } from '../numbers.js';
import { Plot } from '../parts/plot.jsx';

/** @import { Cost } from '../engine/experiments.js' */

const kLengths = [128, 256, 512, 1024, 2048, 4096];

export function CostMeasurement() {
  const { engine, ready } = useLesson();
  const [costs, setCosts] = useState(/** @type {Cost[]} */ ([]));
  const [isRunning, setRunning] = useState(false);
  const [failure, setFailure] = useState('');
  async function measure() {
    setRunning(true);
    setFailure('');
    /** @type {Cost[]} */
    const measured = [];
    try {
      await ready;
      for (const T of kLengths) {
        measured.push(await engine.ask('cost', { T }));
        setCosts([...measured]);
      }
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
    }
    setRunning(false);
  }
  return (
    <div class="measurement" id="cost-measurement">
      <div class="buttons">
        <button type="button" class="plain" disabled={isRunning} onClick={measure}>
          {isRunning
            ? `Measuring T = ${kLengths[costs.length] ?? ''} …`
            : costs.length > 0
              ? 'Measure again'
              : 'Measure it here'}
        </button>
        <span class="note">One head of 64 channels, one thread, the kernels of this page.</span>
      </div>
      {failure && <p class="failure">{failure}</p>}
      {costs.length > 0 && (
        <>
          <table class="plain-table number">
            <thead>
              <tr>
                <th scope="col">T</th>
                <th scope="col" class="right">
                  time
                </th>
                <th scope="col" class="right">
                  against T / 2
                </th>
                <th scope="col" class="right">
                  memory, fused
                </th>
                <th scope="col" class="right">
                  with all weights
                </th>
              </tr>
            </thead>
            <tbody>
              {costs.map(({ T, milliseconds, fusedBytes, matrixBytes }, i) => (
                <tr key={T}>
                  <th scope="row">{T}</th>
                  <td class="right">{milliseconds.toFixed(milliseconds < 10 ? 2 : 0)} ms</td>
                  <td class="right">{i > 0 ? `× ${(milliseconds / costs[i - 1].milliseconds).toFixed(1)}` : ''}</td>
                  <td class="right">{bytesText(fusedBytes)}</td>
                  <td class="right">{bytesText(matrixBytes)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <p class="note">
            Memory is what the module’s had to grow by from the 2 MB it begins with: 0 where that was enough.
          </p>
        </>
      )}
      {costs.length > 1 && (
        <>
          <Plot
            label="Time against length, both doubling from line to line, with a line for T squared"
            x={{ label: 'T', log: true, domain: [128, 4096], ticks: kLengths, format: String }}
            y={{
              label: 'time, ms',
              log: true,
              ticks: [0.01, 0.1, 1, 10, 100, 1000],
              domain: timeDomain(costs),
              format: String,
            }}
            series={[
              { name: 'T², from the last one', kind: 'faint', points: squareFrom(costs) },
              {
                name: 'measured',
                kind: 'accent',
                dots: true,
                points: costs.map(({ T, milliseconds }) => [T, milliseconds]),
              },
            ]}
            height={200}
          />
          <Plot
            label="Memory against length, fused and with the full matrix of weights"
            x={{ label: 'T', domain: [0, 4096], ticks: [128, 1024, 2048, 4096], format: String }}
            y={{ label: 'memory that was added', format: bytesText }}
            series={[
              {
                name: 'all weights: T²',
                kind: 'ink',
                dots: true,
                points: costs.map(({ T, matrixBytes }) => [T, matrixBytes]),
              },
              {
                name: 'fused: T',
                kind: 'accent',
                dots: true,
                points: costs.map(({ T, fusedBytes }) => [T, fusedBytes]),
              },
            ]}
            height={180}
          />
        </>
      )}
    </div>
  );
}

/** @param {Cost[]} costs @returns {[number, number]} whole decades around the times */
function timeDomain(costs) {
  const times = [...costs, ...squareFrom(costs).map(([, milliseconds]) => ({ milliseconds }))].map((each) =>
    Math.max(1e-3, each.milliseconds),
  );
  return [10 ** Math.floor(Math.log10(Math.min(...times))), 10 ** Math.ceil(Math.log10(Math.max(...times)))];
}

/** @param {Cost[]} costs @returns {[number, number][]} */
function squareFrom(costs) {
  const { T, milliseconds } = costs[costs.length - 1];
  return kLengths.map((length) => [length, milliseconds * (length / T) ** 2]);
}
