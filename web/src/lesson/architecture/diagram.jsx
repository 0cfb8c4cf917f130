// The layer as boxes on a line; two ways lead around them.
import { useRef } from 'preact/hooks';
import { formatCount } from '../../views/format.js';
import { short } from '../numbers.js';

/** @import { Part } from './parts.js' */

const kBox = { x: 28, width: 200, height: 36, gap: 16 };
const kNext = /** @type {Record<string, number>} */ ({ ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 });

/** @param {{ parts: Part[], chosen: string, onChoose: (name: string) => void }} props */
export function Diagram({ parts, chosen, onChoose }) {
  const root = useRef(/** @type {SVGSVGElement | null} */ (null));
  const step = kBox.height + kBox.gap;
  const top = 24;
  const mlp = parts.findIndex(({ name }) => name === 'mlp');
  /** Between the two halves of a layer there is room for both ways around. */
  const yOf = (/** @type {number} */ i) => top + i * step + (mlp > 0 && i >= mlp ? kBox.gap : 0);
  const height = yOf(parts.length) + 16;
  const middle = kBox.x + kBox.width / 2;
  const place = (/** @type {string} */ name) => parts.findIndex((part) => part.name === name);
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const move = kNext[event.key];
    if (!move) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(parts.length - 1, place(chosen) + move));
    onChoose(parts[next].name);
    /** @type {SVGGElement | null} */ (root.current?.querySelector(`[data-name="${parts[next].name}"]`))?.focus();
  };
  const most = Math.max(...parts.map(({ flops }) => flops));
  return (
    <div class="diagram" role="radiogroup" aria-label="Parts of a layer" onKeyDown={onKeyDown}>
      {/* biome-ignore lint/a11y/noSvgWithoutTitle: the group around it has the name, and each part its own */}
      <svg ref={root} width="232" height={height} viewBox={`0 0 232 ${height}`}>
        <text class="tick-text middle" x={middle} y="12">
          hidden states
        </text>
        <path class="flow" d={`M ${middle} 16 V ${height - 4}`} />
        <Around from={16} to={yOf(place('out')) + kBox.height + kBox.gap / 2} middle={middle} />
        {mlp > 0 && <Around from={yOf(mlp) - kBox.gap / 2} to={height - 8} middle={middle} />}
        {parts.map((part, i) => (
          // biome-ignore lint/a11y/useSemanticElements: an SVG has no radio buttons
          <g
            key={part.name}
            role="radio"
            aria-checked={part.name === chosen}
            aria-label={`${part.title}, ${formatCount(part.parameters)} parameters`}
            tabindex={part.name === chosen ? 0 : -1}
            data-name={part.name}
            class="box"
            onClick={() => onChoose(part.name)}
            transform={`translate(${kBox.x} ${yOf(i)})`}
          >
            <rect width={kBox.width} height={kBox.height} rx="4" />
            <text x="12" y="22">
              {part.title}
            </text>
            <rect class="load" y={kBox.height - 3} width={(kBox.width * part.flops) / most} height="3" />
            <title>
              {part.title}: {short(part.flops)} operations
            </title>
          </g>
        ))}
      </svg>
    </div>
  );
}

/** What is added past the boxes. @param {{ from: number, to: number, middle: number }} props */
function Around({ from, to, middle }) {
  return (
    <g class="around">
      <path class="around-line" d={`M ${middle} ${from} H 12 V ${to} H ${middle - 6}`} />
      <circle class="plus" cx={middle} cy={to} r="6" />
      <path class="around-line" d={`M ${middle - 3} ${to} h 6 M ${middle} ${to - 3} v 6`} />
    </g>
  );
}
