// Which token asks, and which one is asked: the cell that the instrument speaks of, too.
import { useLesson } from '../context.js';

/** @param {{ withKey?: boolean }} props */
export function TokenPicker({ withKey = false }) {
  const { store, state, steps } = useLesson();
  const tokens = steps?.tokens ?? [];
  const last = tokens.length - 1;
  const { row, column } = cellOf(state, tokens.length, steps?.causal ?? true);
  const set = (/** @type {{ row?: number, column?: number }} */ patch) =>
    store.set({ focus: { row, column, ...patch }, locked: true });
  return (
    <div class="picker">
      <Choice
        label="Token that asks"
        tokens={tokens}
        value={row}
        most={last}
        onChange={(value) => set({ row: value, column: Math.min(column, steps?.causal ? value : last) })}
      />
      {withKey && (
        <Choice
          label="Token that is asked"
          tokens={tokens}
          value={column}
          most={steps?.causal ? row : last}
          onChange={(value) => set({ column: value })}
        />
      )}
    </div>
  );
}

/** @param {{ label: string, tokens: string[], value: number, most: number, onChange: (value: number) => void }} props */
function Choice({ label, tokens, value, most, onChange }) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(Number(event.currentTarget.value))}>
        {tokens.slice(0, most + 1).map((token, i) => (
          <option key={i} value={i}>
            {i} “{token}”
          </option>
        ))}
      </select>
    </label>
  );
}

/**
 * The cell in focus as far as it exists, and where the mask leaves it in sight.
 * @param {import('../../state.js').State} state @param {number} count @param {boolean} causal
 */
export function cellOf({ focus }, count, causal) {
  const row = Math.max(0, Math.min(count - 1, focus.row));
  return { row, column: Math.max(0, Math.min(focus.column, causal ? row : count - 1)) };
}
