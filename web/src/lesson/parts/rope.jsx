// A query and a key turned by their positions, pair by pair, and what that does to their product.
import { useMemo, useRef, useState } from 'preact/hooks';
import { useAnswer, useLesson } from '../context.js';
import { fixed, rowOf } from '../numbers.js';
import { Plot } from './plot.jsx';
import { Slider } from './slider.jsx';
import { cellOf } from './token-picker.jsx';

/** @import { RopeSettings } from '../engine/rope-of.js' */

/** @type {RopeSettings} */
const kDefaultRope = { style: 'half', base: 10000 };
const kFar = 96;
const kMostShift = 200;

export function Rope() {
  const lesson = useLesson();
  const { state, steps } = lesson;
  const [shift, setShift] = useState(0);
  const [move, setMove] = useState(0);
  const { row, column } = cellOf(state, steps);
  const vectors = useMemo(
    () => steps && { q: Array.from(rowOf(steps.q, row)), k: Array.from(rowOf(steps.k, column)) },
    [steps, row, column],
  );
  const rope = steps?.rope ?? kDefaultRope;
  const positions = /** @type {const} */ ([row + shift, column + shift + move]);
  const ask = (/** @type {(readonly [number, number])[]} */ pairs) => vectors && { ...vectors, rope, pairs };
  const turned = useAnswer(lesson, 'ropeScores', ask([positions, [row, column]]));
  const byDistance = useAnswer(
    lesson,
    'ropeScores',
    ask(Array.from({ length: kFar + 1 }, (_, far) => [kFar, kFar - far])),
  );
  if (!steps || !vectors || !turned) return <figure class="panel rope-panel" />;
  const D = turned.q.length;
  const [m, n] = turned.pairs[0]; // of the answer that is shown
  const distance = m - n;

  return (
    <figure class="panel rope-panel" id="rope">
      <figcaption>
        <span class="q-name">
          q of {row} “{steps.tokens[row]}”
        </span>{' '}
        and{' '}
        <span class="k-name">
          k of {column} “{steps.tokens[column]}”
        </span>
        , turned
        {!steps.rope && ' as RoPE would (this model has no RoPE)'}
      </figcaption>
      <div class="clocks">
        {pairsOf(D).map((i) => (
          <Clock key={i} i={i} D={D} rope={turned.rope} q={turned.q} k={turned.k} />
        ))}
      </div>
      <Slider label="Shift both by" value={shift} most={kMostShift} onChange={setShift} />
      <Slider label="Move the key alone by" value={move} least={-column} most={row - column + 32} onChange={setMove} />
      <p class="result" aria-live="polite">
        Query at <b class="number">{m}</b>, key at <b class="number">{n}</b>, distance{' '}
        <b class="number">{fixed(distance, 0)}</b>: score{' '}
        <b class="number" id="rope-score">
          {fixed(turned.scores[0], 4)}
        </b>
        <span class="note number">
          {' '}
          where they stand in your text: {fixed(turned.scores[1], 4)}; difference{' '}
          {fixed(turned.scores[0] - turned.scores[1], 4)}
        </span>
      </p>
      {byDistance && (
        <Plot
          label="Score against the distance between query and key"
          x={{ label: 'distance, tokens back', domain: [0, kFar], ticks: [0, 16, 32, 48, 64, 80, 96] }}
          y={{ label: 'score q·k / √dₖ' }}
          series={[{ name: 'score', kind: 'ink', points: byDistance.scores.map((score, far) => [far, score]) }]}
          marker={distance >= 0 && distance <= kFar ? distance : null}
          height={180}
        />
      )}
    </figure>
  );
}

/** Four pairs from the fastest to the slowest. @param {number} D */
function pairsOf(D) {
  const half = Math.floor(D / 2);
  return [...new Set([0, Math.floor(half / 5), Math.floor(half / 2.5), half - 1])];
}

/** @param {{ i: number, D: number, rope: RopeSettings, q: number[], k: number[] }} props */
function Clock({ i, D, rope, q, k }) {
  const width = rope.rotaryDim ?? D;
  const [first, second] = rope.style === 'half' ? [i, i + width / 2] : [2 * i, 2 * i + 1];
  const hands = [
    { kind: 'k', x: k[first], y: k[second] },
    { kind: 'q', x: q[first], y: q[second] },
  ];
  const longest = Math.max(...hands.map(({ x, y }) => Math.hypot(x, y)), 1e-9);
  const theta = rope.base ** ((-2 * i) / width);
  return (
    <div class="clock">
      <svg viewBox="-50 -50 100 100" role="img" aria-label={`Pair ${i + 1}, turned by ${theta.toPrecision(3)} a token`}>
        <circle class="clock-face" r="46" />
        {hands.map((hand) => (
          <Hand key={hand.kind} longest={longest} {...hand} />
        ))}
      </svg>
      <span class="note">
        pair <span class="number">{i + 1}</span>
      </span>
      <span class="note number">θ = {angleText(theta)}</span>
    </div>
  );
}

/** It turns to where it should be by the shorter way. @param {{ kind: string, x: number, y: number, longest: number }} props */
function Hand({ kind, x, y, longest }) {
  const angle = useRef(0);
  const further = (-180 / Math.PI) * Math.atan2(y, x) - angle.current; // y points down here
  angle.current += further - 360 * Math.round(further / 360);
  const length = (44 * Math.hypot(x, y)) / longest;
  return (
    <g class={`hand ${kind}`} style={{ transform: `rotate(${angle.current}deg)` }}>
      <line x2={length} />
      <circle class="hand-tip" cx={length} r="4" />
    </g>
  );
}

/** @param {number} theta */
function angleText(theta) {
  if (theta >= 0.001) return theta.toPrecision(2);
  const [digits, power] = theta.toExponential(1).split('e');
  return (
    <>
      {digits} · 10<sup>{power.replace('-', '−')}</sup>
    </>
  );
}
