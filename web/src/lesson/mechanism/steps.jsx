// What each step of the mechanism shows: tensors, formula, and the arithmetic of the cell in focus.
import { visibleKeys } from '../../engine/rules.js';
import { at, fixed, masked, rowOf, sizeText } from '../numbers.js';
import { RopeArithmetic } from './rope-arithmetic.jsx';
import { SoftmaxRow } from './softmax-row.jsx';
import { Line, Terms } from './terms.jsx';

/** @import { Tensor } from '../../types.js' */
/** @import { Drawable } from '../engine/ranges.js' */
/** @import { HeadSteps } from '../engine/steps.js' */

/** @typedef {{ steps: HeadSteps, row: number, column: number, channel: number }} Cell */
/**
 * @typedef {object} Picture
 * @property {Drawable | null} tensor @property {string} name @property {string} [says]
 * @property {'signed' | 'weights'} [kind]
 * @property {'row' | 'column'} [rows] whether its rows are tokens that ask or that are asked
 * @property {boolean} [isSquare] rows ask, columns are asked
 * @property {boolean} [marksChannel]
 */
/**
 * @typedef {object} Step
 * @property {string} title @property {string} says @property {string} formula
 * @property {(cell: Cell) => Picture[]} tensors
 * @property {(cell: Cell) => any} arithmetic
 * @property {(steps: HeadSteps | null) => number} [channels] how many there are to choose from
 * @property {boolean} [withKey] whether the token that is asked matters
 */

const kHidden = 'The parameters of your own model aren’t kept by this page, so the projection can’t be written out.';

/** @param {Tensor} x @param {Tensor} weight @param {number} row @param {number} channel */
const projected = (x, weight, row, channel) =>
  Array.from(rowOf(x, row), (value, i) => {
    const parameter = at(weight, channel, i);
    return { name: i, factors: [value, parameter], product: value * parameter };
  });

/** @param {Tensor} a @param {Tensor} b @param {number} i @param {number} j */
const byChannel = (a, b, i, j) =>
  Array.from(rowOf(a, i), (value, c) => ({ name: c, factors: [value, at(b, j, c)], product: value * at(b, j, c) }));

/** @param {HeadSteps} steps @param {number} i */
const quoted = ({ tokens }, i) => `${i} “${tokens[i]}”`;

/** @param {HeadSteps} steps @param {number} row @param {number} channel */
function byKey(steps, row, channel) {
  const [first, last] = visibleKeys(steps.rule, row, steps.tokens.length);
  return Array.from(rowOf(steps.weights, row).slice(first, last + 1), (weight, i) => {
    const value = at(steps.v, first + i, channel);
    return { name: quoted(steps, first + i), factors: [weight, value], product: weight * value };
  });
}

/** What a row sees, in words. @param {Cell} cell */
function sightOf({ steps, row, column }) {
  const T = steps.tokens.length;
  const [first, last] = visibleKeys(steps.rule, row, T);
  if (last - first + 1 === T && !steps.rule.causal)
    return 'This layer runs without a mask: every token sees every other.';
  return (
    `Row ${row} sees the keys ${first} to ${last}: ${last - first + 1} of ${T}. ${quoted(steps, column)} is among them: ` +
    `${fixed(at(steps.scores, row, column))} + 0. Outside, every score is −∞.`
  );
}

/** @type {readonly Step[]} */
export const kSteps = [
  {
    title: 'The hidden states X',
    says: 'A layer starts from one vector for each token, brought to the same length by a norm. Nothing has looked at anything yet, at least not in this layer.',
    formula: 'stepX',
    tensors: ({ steps }) => [{ tensor: steps.x, name: 'X', says: 'one row a token', marksChannel: true }],
    channels: (steps) => (steps?.x ? steps.width : 0),
    arithmetic: ({ steps, row, channel }) =>
      steps.x ? (
        <Line>
          X[{row}, {channel}] = {fixed(at(steps.x, row, channel))}: number {channel} of {quoted(steps, row)}
        </Line>
      ) : (
        <p class="note">{kHidden}</p>
      ),
  },
  {
    title: 'Queries, keys and values',
    says: 'Three projections of X, cut into heads. This head has its own queries; where query heads share, several of them read the same keys and values.',
    formula: 'stepQkv',
    tensors: ({ steps }) => [
      { tensor: steps.x, name: 'X', says: 'in' },
      { tensor: steps.q, name: 'Q', says: 'queries', marksChannel: true },
      { tensor: steps.k, name: 'K', says: `keys, head ${steps.kvHead}`, rows: 'column', marksChannel: true },
      { tensor: steps.v, name: 'V', says: `values, head ${steps.kvHead}`, rows: 'column', marksChannel: true },
    ],
    channels: (steps) => steps?.D ?? 0,
    withKey: true,
    arithmetic: ({ steps, row, column, channel }) =>
      steps.x && steps.parameters ? (
        <>
          <Terms
            label="A query as a sum of products"
            heads={['Channel of X', 'x', 'W', 'x · W']}
            terms={projected(steps.x, steps.parameters.q, row, channel)}
            sum={`Q[${row}, ${channel}]`}
            total={at(steps.q, row, channel)}
            most={8}
          />
          <Line>
            From {quoted(steps, column)}, with the other two matrices: K[{column}, {channel}] ={' '}
            <b id="key-in-focus">{fixed(at(steps.k, column, channel))}</b>, V[{column}, {channel}] ={' '}
            <b id="value-in-focus">{fixed(at(steps.v, column, channel))}</b>
          </Line>
        </>
      ) : (
        <p class="note">{kHidden}</p>
      ),
  },
  {
    title: 'Positions: RoPE',
    says: 'Queries and keys are turned pair by pair, by an angle that grows with their position. Values stay.',
    formula: 'stepRope',
    tensors: ({ steps }) => [
      { tensor: steps.q, name: 'Q', says: 'before', marksChannel: true },
      { tensor: steps.turned.q, name: 'Q′', says: 'turned', marksChannel: true },
      { tensor: steps.k, name: 'K', says: 'before', rows: 'column', marksChannel: true },
      { tensor: steps.turned.k, name: 'K′', says: 'turned', rows: 'column', marksChannel: true },
    ],
    channels: (steps) => steps?.D ?? 0,
    arithmetic: ({ steps, row, channel }) => <RopeArithmetic steps={steps} row={row} channel={channel} />,
  },
  {
    title: 'Every query meets every key',
    says: 'A dot product for each pair of tokens: T × T numbers, the only place where tokens meet.',
    formula: 'stepProducts',
    tensors: ({ steps }) => [
      { tensor: steps.turned.q, name: 'Q′', says: 'asks' },
      { tensor: steps.turned.k, name: 'K′', says: 'is asked', rows: 'column' },
      { tensor: steps.products, name: 'Q′K′ᵀ', says: 'products', isSquare: true },
    ],
    withKey: true,
    arithmetic: ({ steps, row, column }) => (
      <Terms
        label="The product of query and key, channel by channel"
        heads={['Channel', `q of ${row}`, `k of ${column}`, 'q · k']}
        terms={byChannel(steps.turned.q, steps.turned.k, row, column)}
        sum={`q·k, ${quoted(steps, row)} asks ${quoted(steps, column)}`}
        total={at(steps.products, row, column)}
      />
    ),
  },
  {
    title: 'Divided by √dₖ',
    says: 'The factor of section 1. It is the same for every cell, so the picture stays; its scale changes.',
    formula: 'stepScale',
    tensors: ({ steps }) => [
      { tensor: steps.products, name: 'Q′K′ᵀ', says: 'products', isSquare: true },
      { tensor: steps.scores, name: 'S', says: 'scores', isSquare: true },
    ],
    withKey: true,
    arithmetic: ({ steps, row, column }) => (
      <Line>
        {Math.abs(steps.scale * Math.sqrt(steps.D) - 1) < 1e-6
          ? `${fixed(at(steps.products, row, column))} / √${steps.D} = `
          : ''}
        {fixed(at(steps.products, row, column))} / {fixed(1 / steps.scale)}
        {steps.softcap > 0 && ', capped,'} = <b id="score-in-focus">{fixed(at(steps.scores, row, column))}</b>
      </Line>
    ),
  },
  {
    title: 'The mask',
    says: 'A token may not see what comes after it. Its score there becomes −∞, and no weight will be left.',
    formula: 'stepMask',
    tensors: ({ steps }) => [
      { tensor: steps.scores, name: 'S', says: 'scores', isSquare: true },
      { tensor: masked(steps.scores, steps.rule), name: 'S + M', says: 'hatched: −∞', isSquare: true },
    ],
    withKey: true,
    arithmetic: (cell) => <Line>{sightOf(cell)}</Line>,
  },
  {
    title: 'Highest to zero, then exp',
    says: 'The highest score of a row is taken from all of them, which changes no weight and keeps exp from overflowing; the highest becomes e⁰ = 1.',
    formula: 'stepExp',
    tensors: ({ steps }) => [
      { tensor: masked(steps.scores, steps.rule), name: 'S + M', says: 'scores', isSquare: true },
    ],
    withKey: true,
    arithmetic: (cell) => <SoftmaxRow {...cell} isNormalised={false} />,
  },
  {
    title: 'Divided by the sum: the weights',
    says: 'Each row is divided by its sum. What is left adds up to 1: these are the attention weights, the matrix of the instrument.',
    formula: 'stepWeights',
    tensors: ({ steps }) => [
      { tensor: masked(steps.scores, steps.rule), name: 'S + M', says: 'scores', isSquare: true },
      { tensor: masked(steps.weights, steps.rule), name: 'A', says: 'weights', kind: 'weights', isSquare: true },
    ],
    withKey: true,
    arithmetic: (cell) => <SoftmaxRow {...cell} isNormalised />,
  },
  {
    title: 'Weights times values',
    says: 'The answer: the values of all tokens in sight, each times its weight, added up.',
    formula: 'stepMix',
    tensors: ({ steps }) => [
      { tensor: masked(steps.weights, steps.rule), name: 'A', says: 'weights', kind: 'weights', isSquare: true },
      { tensor: steps.v, name: 'V', says: 'values', rows: 'column', marksChannel: true },
      { tensor: steps.mixed, name: 'A V', says: 'this head’s output', marksChannel: true },
    ],
    channels: (steps) => steps?.D ?? 0,
    arithmetic: ({ steps, row, channel }) => (
      <Terms
        label="An output as a sum of weighted values"
        heads={['Key', 'weight', 'value', 'weight · value']}
        terms={byKey(steps, row, channel)}
        sum={`A V[${row}, ${channel}]`}
        total={at(steps.mixed, row, channel)}
        most={8}
      />
    ),
  },
  {
    title: 'Heads side by side',
    says: 'All heads of the layer have done the same at once, each with its own queries. Their outputs are put next to one another.',
    formula: 'stepJoin',
    tensors: ({ steps }) => [
      { tensor: steps.mixed, name: 'A V', says: 'of this head' },
      { tensor: steps.joined, name: 'O', says: 'of all heads', marksChannel: true },
    ],
    channels: (steps) => (steps ? steps.joined.shape[1] : 0),
    arithmetic: ({ steps, row, channel }) => (
      <Line>
        O {sizeText(steps.joined)}: channel {channel} is channel {channel % steps.D} of head{' '}
        {Math.floor(channel / steps.D)}; here {fixed(at(steps.joined, row, channel))}. This head fills the channels{' '}
        {steps.at[1] * steps.D} to {(steps.at[1] + 1) * steps.D - 1}.
      </Line>
    ),
  },
  {
    title: 'Back to the width of X',
    says: 'A last projection mixes the heads and brings them back to the width of the hidden states, to which they are added.',
    formula: 'stepOut',
    tensors: ({ steps }) => [
      { tensor: steps.joined, name: 'O', says: 'heads' },
      { tensor: steps.output, name: 'Y', says: 'out', marksChannel: true },
    ],
    channels: (steps) => (steps?.output ? steps.width : 0),
    arithmetic: ({ steps, row, channel }) =>
      steps.output && steps.parameters ? (
        <Terms
          label="An output of the layer as a sum of products"
          heads={['Channel of O', 'o', 'W', 'o · W']}
          terms={projected(steps.joined, steps.parameters.out, row, channel)}
          sum={`Y[${row}, ${channel}]`}
          total={at(steps.output, row, channel)}
          most={8}
        />
      ) : (
        <p class="note">{kHidden}</p>
      ),
  },
];
