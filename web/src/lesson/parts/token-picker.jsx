// Which token asks, and which one is asked: the cell that the instrument speaks of, too.
import { useId } from 'preact/hooks';
import { visibleKeys } from '../../engine/rules.js';
import { useLesson } from '../context.js';

/** @import { State } from '../../state.js' */
/** @import { HeadSteps } from '../engine/steps.js' */

/** Above this a list of tokens is slower to draw, and to look through, than a number is to type. */
const kMostListed = 300;

/** @param {{ withKey?: boolean }} props */
export function TokenPicker({ withKey = false }) {
  const { store, state, steps } = useLesson();
  const tokens = steps?.tokens ?? [];
  const cell = cellOf(state, steps);
  const set = (/** @type {Partial<typeof cell>} */ patch) => store.set({ focus: { ...cell, ...patch }, locked: true });
  const [first, last] = steps ? visibleKeys(steps.rule, cell.row, tokens.length) : [0, -1];
  return (
    <div class="picker">
      <Choice
        label="Token that asks"
        tokens={tokens}
        keys={[0, tokens.length - 1]}
        value={cell.row}
        onChange={(row) => set({ row, column: Math.min(cell.column, row) })}
      />
      {withKey && (
        <Choice
          label="Token that is asked"
          tokens={tokens}
          keys={[first, last]}
          value={cell.column}
          onChange={(column) => set({ column })}
        />
      )}
    </div>
  );
}

/** @param {{ label: string, tokens: string[], keys: number[], value: number, onChange: (value: number) => void }} props */
function Choice({ label, tokens, keys: [first, last], value, onChange }) {
  const id = useId();
  return (
    <div class="pick">
      <label for={id}>{label}</label>
      {last - first < kMostListed ? (
        <select id={id} value={value} onChange={(event) => onChange(Number(event.currentTarget.value))}>
          {tokens.slice(first, last + 1).map((token, i) => (
            <option key={first + i} value={first + i}>
              {first + i} “{token}”
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          type="number"
          class="number"
          min={first}
          max={last}
          value={value}
          onChange={({ currentTarget: { valueAsNumber } }) => {
            if (valueAsNumber >= first && valueAsNumber <= last) onChange(Math.floor(valueAsNumber));
          }}
        />
      )}
    </div>
  );
}

/**
 * The cell in focus as far as the row sees it.
 * @param {State} state @param {HeadSteps | null} steps
 */
export function cellOf({ focus }, steps) {
  if (!steps) return { row: 0, column: 0 };
  const T = steps.tokens.length;
  const row = Math.max(0, Math.min(T - 1, focus.row));
  const [first, last] = visibleKeys(steps.rule, row, T);
  return { row, column: Math.max(first, Math.min(focus.column, last)) };
}
