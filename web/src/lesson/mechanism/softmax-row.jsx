// A row of scores on its way to weights: highest subtracted, exp, sum, divided.
import { useEffect, useRef } from 'preact/hooks';
import { visibleKeys } from '../../engine/rules.js';
import { at, fixed, rowOf } from '../numbers.js';
import { Line } from './terms.jsx';

/** @import { HeadSteps } from '../engine/steps.js' */

/** @param {{ steps: HeadSteps, row: number, column: number, isNormalised: boolean }} props */
export function SoftmaxRow({ steps, row, column, isNormalised }) {
  const region = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const line = /** @type {HTMLElement | null | undefined} */ (region.current?.querySelector('.chosen'));
    if (region.current && line) region.current.scrollTop = line.offsetTop - region.current.clientHeight / 2;
  }, [steps, row, column]);
  const [first, last] = visibleKeys(steps.rule, row, steps.tokens.length);
  const scores = Array.from(rowOf(steps.scores, row).slice(first, last + 1));
  const mine = column - first;
  const highest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - highest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return (
    <>
      {isNormalised ? (
        <Line>
          {fixed(powers[mine], 4)} / {fixed(sum, 4)} ={' '}
          <b id="weight-in-focus">{fixed(at(steps.weights, row, column), 4)}</b>
        </Line>
      ) : (
        <Line>
          exp({fixed(scores[mine])} − {highest < 0 ? `(${fixed(highest)})` : fixed(highest)}) = exp(
          {fixed(scores[mine] - highest)}) = <b>{fixed(powers[mine], 4)}</b>
        </Line>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keys */}
      <section class="terms" ref={region} tabIndex={0} aria-label="The row, key by key">
        <table class="plain-table number">
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col" class="right">
                score
              </th>
              <th scope="col" class="right">
                − highest
              </th>
              <th scope="col" class="right">
                exp
              </th>
              {isNormalised && (
                <th scope="col" class="right">
                  weight
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {near(scores, mine).map(({ score, j }) => (
              <tr key={j} class={j === mine ? 'chosen' : ''}>
                <th scope="row">
                  {first + j} “{steps.tokens[first + j]}”
                </th>
                <td class="right">{fixed(score)}</td>
                <td class="right">{fixed(score - highest)}</td>
                <td class="right">{fixed(powers[j], 4)}</td>
                {isNormalised && <td class="right">{fixed(at(steps.weights, row, first + j), 4)}</td>}
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">Highest, and sum</th>
              <td class="right">{fixed(highest)}</td>
              <td />
              <td class="right">{fixed(sum, 4)}</td>
              {isNormalised && (
                <td class="right">
                  {fixed(
                    rowOf(steps.weights, row).reduce((total, weight) => total + weight, 0),
                    4,
                  )}
                </td>
              )}
            </tr>
          </tfoot>
        </table>
      </section>
    </>
  );
}

const kMostListed = 128;

/** The keys around one, of a row that is too long to be listed whole. @param {number[]} scores @param {number} mine */
function near(scores, mine) {
  const from = Math.max(0, Math.min(mine - kMostListed / 2, scores.length - kMostListed));
  return scores.slice(from, from + kMostListed).map((score, i) => ({ score, j: from + i }));
}
