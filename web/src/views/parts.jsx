// Controls that the views share.

/**
 * One of several, as a row of buttons.
 * @template {string | number} T
 * @param {{ legend: string, name: string, options: readonly { value: T, label: string, isDisabled?: boolean }[], value: T,
 *   onChange: (value: T) => void }} props
 */
export function Segments({ legend, name, options, value, onChange }) {
  return (
    <fieldset class="segments compact">
      <legend>{legend}</legend>
      <div>
        {options.map((option) => (
          <label key={option.value}>
            <input
              type="radio"
              name={name}
              value={option.value}
              checked={option.value === value}
              disabled={option.isDisabled}
              onChange={() => onChange(option.value)}
            />
            <span>{option.label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** @param {{ label: string, isOn: boolean, onChange: (isOn: boolean) => void, id?: string, isDisabled?: boolean }} props */
export function Switch({ label, isOn, onChange, id, isDisabled }) {
  return (
    <label class="switch">
      <input
        type="checkbox"
        id={id}
        checked={isOn}
        disabled={isDisabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  );
}

/**
 * A slider over given values, with the chosen one written beside it.
 * @param {{ label: string, values: readonly number[], value: number, format: (value: number) => string,
 *   onChange: (value: number) => void, isDisabled?: boolean }} props
 */
export function Steps({ label, values, value, format, onChange, isDisabled }) {
  const nearest = values.reduce(
    (best, each, i) => (Math.abs(each - value) < Math.abs(values[best] - value) ? i : best),
    0,
  );
  return (
    <label class="steps">
      <span>{label}</span>
      <input
        type="range"
        min={0}
        max={values.length - 1}
        step={1}
        value={nearest}
        disabled={isDisabled}
        aria-valuetext={format(value)}
        onInput={(event) => onChange(values[Number(event.currentTarget.value)])}
      />
      <output class="number">{format(value)}</output>
    </label>
  );
}

/**
 * @param {{ label: string, value: number, least: number, most: number, onChange: (value: number) => void,
 *   isDisabled?: boolean }} props
 */
export function Count({ label, value, least, most, onChange, isDisabled }) {
  const change = (/** @type {string} */ text) => {
    const wanted = Math.round(Number(text));
    if (text !== '' && wanted >= least && wanted <= most) onChange(wanted);
  };
  return (
    <label class="count">
      <span>{label}</span>
      <input
        type="number"
        class="number"
        min={least}
        max={most}
        value={value}
        disabled={isDisabled}
        onChange={(event) => change(event.currentTarget.value)}
      />
    </label>
  );
}

/** @param {{ title: string, isOpen?: boolean, onToggle?: (isOpen: boolean) => void, id?: string, children: any }} props */
export function Fold({ title, isOpen, onToggle, id, children }) {
  return (
    <details class="fold" id={id} open={isOpen} onToggle={(event) => onToggle?.(event.currentTarget.open)}>
      <summary>
        <h2>{title}</h2>
      </summary>
      <div class="fold-body">{children}</div>
    </details>
  );
}
