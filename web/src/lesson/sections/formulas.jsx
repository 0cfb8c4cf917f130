// 2. The formula, symbol by symbol, and positions as rotations.
import { useMemo, useState } from 'preact/hooks';
import { headName } from '../../state.js';
import { useLesson } from '../context.js';
import { firstOf, fixed, masked, sizeText } from '../numbers.js';
import { Formula } from '../parts/formula.jsx';
import { InTurn } from '../parts/in-turn.jsx';
import { Rope } from '../parts/rope.jsx';
import { Section } from '../parts/section.jsx';
import { TensorMap } from '../parts/tensor-map.jsx';
import { cellOf } from '../parts/token-picker.jsx';

/** @import { Drawable } from '../engine/ranges.js' */
/** @import { HeadSteps } from '../engine/steps.js' */

/** @typedef {{ symbol: string, sign: string, says: string, more: string, kind: 'signed' | 'weights', tensor: (steps: HeadSteps) => Drawable, marks: 'row' | 'column' | 'cell' }} Symbol */

/** @type {Symbol[]} */
const kSymbols = [
  {
    ...{ symbol: 'q', sign: 'Q', says: 'queries', kind: 'signed', tensor: ({ turned }) => turned.q, marks: 'row' },
    more: 'One row for each token that asks.',
  },
  {
    ...{ symbol: 'k', sign: 'K', says: 'keys', kind: 'signed', tensor: ({ turned }) => turned.k, marks: 'column' },
    more: 'One row for each token that is asked; transposed, so that each query meets each key.',
  },
  {
    ...{
      symbol: 'd',
      sign: 'QKᵀ / √dₖ',
      says: 'scores',
      kind: 'signed',
      tensor: ({ scores }) => scores,
      marks: 'cell',
    },
    more: 'All products, divided so that their spread doesn’t grow with the width.',
  },
  {
    ...{ symbol: 'm', sign: 'M', says: 'mask', kind: 'signed', tensor: (steps) => maskOf(steps), marks: 'cell' },
    more: '0 where token i may see token j, −∞ above the diagonal: nobody sees what comes later.',
  },
  {
    ...{
      symbol: 'w',
      sign: 'softmax',
      says: 'weights',
      kind: 'weights',
      tensor: ({ weights, rule }) => masked(weights, rule),
      marks: 'cell',
    },
    more: 'Each row adds up to 1. This is the matrix that the instrument shows.',
  },
  {
    ...{ symbol: 'v', sign: 'V', says: 'values', kind: 'signed', tensor: ({ v }) => v, marks: 'column' },
    more: 'What a token hands over when it is asked.',
  },
  {
    ...{ symbol: 'o', sign: 'Attention', says: 'output', kind: 'signed', tensor: ({ mixed }) => mixed, marks: 'row' },
    more: 'For each token the values it asked for, mixed by its weights.',
  },
];

/** For the masks of all lengths: zeros are never written to. */
let zeros = new Float32Array();

/** @param {HeadSteps} steps @returns {Drawable} */
function maskOf({ tokens: { length: T }, rule }) {
  if (zeros.length < T * T) zeros = new Float32Array(T * T);
  return masked({ data: zeros.subarray(0, T * T), shape: [T, T], range: [0, 0] }, rule);
}

export function Formulas() {
  return (
    <Section number={2} name="formulas" title="The formula, and where positions come in">
      <p>
        All of it in one line. Point at a symbol, or choose it below: it lights up the tensor that it names, as it is
        now, for your text.
      </p>
      <InTurn place={2}>
        <Symbols />
      </InTurn>
      <MaskChoice />
      <p>
        So far nothing says where a token stands: a sum doesn’t know the order of its terms. Rotary positions (RoPE)
        bring it in before the product. Channels are taken in pairs, and the pair <i>i</i> of the token at position{' '}
        <i>m</i> is turned by the angle <i>mθ</i>
        <sub>i</sub>: the first pairs fast, the last ones slowly.
      </p>
      <Formula name="rope" />
      <Formula name="theta" />
      <p>If both are turned, only the angle between them counts, and with it the distance of the tokens:</p>
      <Formula name="ropeProduct" />
      <p>
        Here are a query and a key of your text as clock hands. Shift both, and the score stays; move one, and it
        changes.
      </p>
      <InTurn place={2}>
        <Rope />
      </InTurn>
    </Section>
  );
}

function Symbols() {
  const { state, steps } = useLesson();
  const [lit, setLit] = useState(/** @type {string | null} */ (null));
  const cell = cellOf(state, steps);
  const tensors = useMemo(
    () => (steps ? Object.fromEntries(kSymbols.map(({ symbol, tensor }) => [symbol, tensor(steps)])) : null),
    [steps],
  );
  const shown = kSymbols.find(({ symbol }) => symbol === lit);
  return (
    <figure class="panel" id="symbols">
      <Formula name="attention" lit={lit} onLight={setLit} />
      <fieldset class="chips" aria-label="Symbols of the formula">
        {kSymbols.map(({ symbol, sign, says }) => (
          <button
            key={symbol}
            type="button"
            class="chip"
            aria-pressed={lit === symbol}
            onPointerEnter={() => setLit(symbol)}
            onFocus={() => setLit(symbol)}
            onClick={() => setLit(symbol)}
          >
            <b>{sign}</b> {says}
          </button>
        ))}
      </fieldset>
      <p class="note two-lines" aria-live="polite">
        {shown && steps && tensors ? (
          <>
            <b>
              {shown.sign} {sizeText(tensors[shown.symbol])}
            </b>{' '}
            {shown.more} <RowText symbol={shown} tensor={tensors[shown.symbol]} cell={cell} steps={steps} />
          </>
        ) : (
          `Head ${headName(steps?.at ?? state.at)}. The lines mark the cell in focus: what asks, and what is asked.`
        )}
      </p>
      <div class="tensors">
        {steps &&
          tensors &&
          kSymbols.map(({ symbol, sign, kind, marks }) => (
            <TensorMap
              key={symbol}
              name={sign}
              kind={kind}
              tensor={tensors[symbol]}
              isLit={lit === symbol}
              row={marks === 'column' ? cell.column : cell.row}
              column={marks === 'cell' ? cell.column : null}
              width={128}
              height={128}
            />
          ))}
      </div>
    </figure>
  );
}

/** The row of a tensor that belongs to the cell in focus. @param {{ symbol: Symbol, tensor: Drawable, cell: { row: number, column: number }, steps: HeadSteps }} props */
function RowText({ symbol, tensor, cell, steps }) {
  const row = symbol.marks === 'column' ? cell.column : cell.row;
  const first = firstOf(tensor, row, 4).map((value) => fixed(value, 2));
  return (
    <span class="number">
      Row {row} (“{steps.tokens[row]}”): {first.join(', ')}
      {tensor.shape[1] > 4 && ', …'}
    </span>
  );
}

/** The mask off and on. */
function MaskChoice() {
  const { store, state } = useLesson();
  const isLayer = state.model === 'untrained';
  const isOn = isLayer ? state.causal : state.mask;
  const set = (/** @type {boolean} */ mask) => store.set(isLayer ? { causal: mask } : { mask });
  return (
    <div class="aside">
      <p>
        Take the mask away, and each row spreads over what comes later, too. The model has never seen that: it was
        trained to guess the next token, which it may not read beforehand.
      </p>
      <div class="buttons">
        <button type="button" class="plain" aria-pressed={!isOn} onClick={() => set(false)}>
          Without the mask
        </button>
        <button type="button" class="plain" aria-pressed={isOn} onClick={() => set(true)}>
          With the mask
        </button>
      </div>
    </div>
  );
}
