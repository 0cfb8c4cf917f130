// 1. What queries, keys and values are for, and why dot products are divided.
import { useState } from 'preact/hooks';
import { headName } from '../../state.js';
import { useAnswer, useLesson } from '../context.js';
import { at, fixed, rowOf } from '../numbers.js';
import { InTurn } from '../parts/in-turn.jsx';
import { Plot } from '../parts/plot.jsx';
import { Section } from '../parts/section.jsx';
import { Slider } from '../parts/slider.jsx';
import { cellOf, TokenPicker } from '../parts/token-picker.jsx';

/** @import { ScaleResult, Sharpness } from '../engine/experiments.js' */

const kShown = 5;
const kKeys = 64;
const kBars = 32;

export function Intuition() {
  return (
    <Section number={1} name="intuition" title="Each token asks the others">
      <p>
        To know what a word means here, a reader looks back: who is “she”, what was that name, how did this phrase go on
        last time? Attention is that look back. Where to look isn’t stored in the model; it is computed anew for each
        text, from the text.
      </p>
      <p>
        Every token makes three vectors. With its <b>query</b> it asks, by its <b>key</b> it is found, and with its{' '}
        <b>value</b> it answers. A query is multiplied with every key; softmax turns the products into weights that add
        up to 1; the sum of the values, each times its weight, is what the token takes over.
      </p>
      <InTurn place={1}>
        <Answers />
      </InTurn>
      <p>
        One detail decides whether this can be learned. A dot product of <i>d</i>
        <sub>k</sub> random numbers spreads like √<i>d</i>
        <sub>k</sub>. Wide vectors would give scores so far apart that softmax hands everything to one key: the row is
        saturated, its weights hardly follow their scores, and no gradient comes through. So scores are divided by √
        <i>d</i>
        <sub>k</sub>. Try it without.
      </p>
      <InTurn place={1}>
        <ScaleExperiment />
      </InTurn>
    </Section>
  );
}

/** The keys that the token in focus attends to most. */
function Answers() {
  const { state, steps } = useLesson();
  const { row } = cellOf(state, steps);
  const weights = steps ? rowOf(steps.weights, row) : new Float32Array();
  const best = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, kShown);
  return (
    <figure class="panel" id="answers">
      <figcaption>
        Head <b>{headName(steps?.at ?? state.at)}</b> on your text: whom does this token ask?
      </figcaption>
      <TokenPicker />
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col" class="right">
              q·k / √d
            </th>
            <th scope="col" colSpan={2}>
              Weight
            </th>
          </tr>
        </thead>
        <tbody>
          {Array.from({ length: kShown }, (_, i) => best[i]).map((key, i) =>
            key === undefined || !steps ? (
              <tr key={`none${i}`}>
                <th scope="row">–</th>
                <td />
                <td class="bar-cell" />
                <td />
              </tr>
            ) : (
              <tr key={key}>
                <th scope="row">
                  <span class="note number">{key}</span> “{steps.tokens[key]}”
                </th>
                <td class="number right">{fixed(at(steps.scores, row, key))}</td>
                <td class="bar-cell">
                  <span class="bar" style={{ width: `${(100 * weights[key]) / weights[best[0]]}%` }} />
                </td>
                <td class="number right">{fixed(weights[key])}</td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </figure>
  );
}

function ScaleExperiment() {
  const lesson = useLesson();
  const results = useAnswer(lesson, 'scaleExperiment', undefined);
  const [index, setIndex] = useState(5);
  const result = results?.[index];
  return (
    <figure class="panel" id="scale-experiment">
      <figcaption>64 random queries on 64 random keys, by the kernel: one row of weights, sorted</figcaption>
      <Slider
        label={
          <>
            Numbers in a vector, <i>d</i>
            <sub>k</sub>
          </>
        }
        value={index}
        most={8}
        text={String(result?.d ?? 2 ** (index + 1))}
        onChange={setIndex}
      />
      <div class="pair">
        <Row title="Divided by √d" which={result?.scaled} />
        <Row title="Not divided" which={result?.plain} />
      </div>
      <Numbers result={result} />
      <Plot
        label="Entropy of the rows against the number of numbers in a vector, with and without the factor"
        x={{ label: 'dₖ', log: true, domain: [2, 512], ticks: [2, 8, 32, 128, 512], format: String }}
        y={{
          label: 'Entropy of a row, nats (most: ln 64 = 4.16)',
          domain: [0, Math.log(kKeys)],
          ticks: [0, 1, 2, 3, 4],
        }}
        series={[
          { name: 'divided by √dₖ', kind: 'accent', points: pointsOf(results, 'scaled') },
          { name: 'not divided', kind: 'ink', points: pointsOf(results, 'plain') },
        ]}
        marker={2 ** (index + 1)}
        height={180}
      />
    </figure>
  );
}

/** @param {ScaleResult[] | null} results @param {'scaled' | 'plain'} which @returns {[number, number][]} */
const pointsOf = (results, which) => (results ?? []).map((result) => [result.d, result[which].entropy]);

/** @param {{ title: string, which: Sharpness | undefined }} props */
function Row({ title, which }) {
  const sorted = [...(which?.row ?? [])].sort((a, b) => b - a).slice(0, kBars);
  return (
    <div>
      <p class="note">
        {title} · largest <span class="number">{which ? fixed(sorted[0]) : '–'}</span>
      </p>
      <svg class="bars" viewBox={`0 0 ${kBars * 4} 64`} preserveAspectRatio="none" aria-hidden="true">
        {sorted.map((weight, i) => (
          <rect key={i} x={i * 4} width="3" y={64 - 64 * weight} height={64 * weight} />
        ))}
      </svg>
    </div>
  );
}

/** @param {{ result: ScaleResult | undefined }} props */
function Numbers({ result }) {
  const line = (/** @type {string} */ name, /** @type {keyof Omit<Sharpness, 'row'>} */ which) => (
    <tr>
      <th scope="row">{name}</th>
      <td class="number right">{result ? fixed(result.scaled[which]) : '–'}</td>
      <td class="number right">{result ? fixed(result.plain[which]) : '–'}</td>
    </tr>
  );
  return (
    <table class="plain-table">
      <thead>
        <tr>
          <td />
          <th scope="col" class="right">
            divided
          </th>
          <th scope="col" class="right">
            not divided
          </th>
        </tr>
      </thead>
      <tbody>
        <tr>
          <th scope="row">Spread of the scores (standard deviation)</th>
          <td class="number right">{result ? fixed(result.deviation / Math.sqrt(result.d), 2) : '–'}</td>
          <td class="number right">{result ? fixed(result.deviation, 2) : '–'}</td>
        </tr>
        {line('Entropy of a row, nats', 'entropy')}
        {line('Largest weight', 'largest')}
        {line('What is left of the gradient, Σ w (1 − w)', 'slope')}
      </tbody>
    </table>
  );
}
