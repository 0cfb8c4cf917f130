import { useId } from 'preact/hooks';

/**
 * @param {{ label: any, value: number, least?: number, most: number, step?: number, text?: string, onChange: (value: number) => void, disabled?: boolean }} props
 *   `text` is the value as it is shown
 */
export function Slider({ label, value, least = 0, most, step = 1, text, onChange, disabled = false }) {
  const id = useId();
  return (
    <div class="slider">
      <label for={id}>{label}</label>
      <output class="number" for={id}>
        {text ?? value}
      </output>
      <input
        id={id}
        type="range"
        min={least}
        max={most}
        step={step}
        value={value}
        disabled={disabled}
        aria-valuetext={text ?? String(value)}
        onInput={(event) => onChange(Number(event.currentTarget.value))}
      />
    </div>
  );
}
