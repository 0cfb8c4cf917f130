// Lines over two axes.
import { extent } from 'd3-array';
import { scaleLinear, scaleLog } from 'd3-scale';
import { line } from 'd3-shape';
import { useWidth } from './width.js';

/** @typedef {{ name: string, points: (readonly [x: number, y: number])[], kind: 'ink' | 'accent' | 'faint', dots?: boolean }} Series */
/** @typedef {{ label: string, log?: boolean, domain?: readonly [number, number], ticks?: number[], format?: (value: number) => string }} Axis */

const kMargin = { top: 20, right: 16, bottom: 40, left: 52 };

/** @param {Axis} axis @param {number[]} values @param {readonly [number, number]} room */
function scaleFor({ log, domain }, values, room) {
  const [low, high] = domain ?? extent(values);
  const scale = log ? scaleLog() : scaleLinear();
  scale.domain([low ?? 0, high ?? 1]).range(room);
  return domain ? scale : scale.nice();
}

/**
 * @param {{ label: string, x: Axis, y: Axis, series: Series[], marker?: number | null, height?: number }} props `marker`:
 *   a value of x
 */
export function Plot({ label, x, y, series, marker = null, height = 220 }) {
  const { place, width } = useWidth();
  const points = series.flatMap((each) => each.points);
  const right = Math.max(kMargin.left + 40, width - kMargin.right);
  const bottom = height - kMargin.bottom;
  const across = scaleFor(
    x,
    points.map((point) => point[0]),
    [kMargin.left, right],
  );
  const up = scaleFor(
    y,
    points.map((point) => point[1]),
    [bottom, kMargin.top],
  );
  const path = line(
    (/** @type {readonly [number, number]} */ point) => across(point[0]),
    (point) => up(point[1]),
  );
  const isIn = (/** @type {number[]} */ domain) => (/** @type {number} */ value) =>
    value >= Math.min(...domain) && value <= Math.max(...domain);
  const xTicks = x.ticks?.filter(isIn(across.domain())) ?? across.ticks(Math.max(2, Math.floor(width / 90)));
  const yTicks = y.ticks?.filter(isIn(up.domain())) ?? up.ticks(4);
  const xText = x.format ?? across.tickFormat(4);
  const yText = y.format ?? up.tickFormat(4);
  return (
    <div class="plot" ref={place}>
      <svg width={width} height={height} role="img" aria-label={label}>
        {width > 0 && (
          <>
            {yTicks.map((value) => (
              <g key={`y${value}`} transform={`translate(0 ${up(value)})`}>
                <line class="grid-line" x1={kMargin.left} x2={right} />
                <text class="tick-text end" x={kMargin.left - 8} dy="0.32em">
                  {yText(value)}
                </text>
              </g>
            ))}
            {xTicks.map((value) => (
              <g key={`x${value}`} transform={`translate(${across(value)} ${bottom})`}>
                <line class="axis-line" y2="4" />
                <text class="tick-text middle" y="18">
                  {xText(value)}
                </text>
              </g>
            ))}
            <line class="axis-line" x1={kMargin.left} x2={right} y1={bottom} y2={bottom} />
            <text class="axis-name end" x={right} y={height - 4}>
              {x.label}
            </text>
            <text class="axis-name" x="0" y="10">
              {y.label}
            </text>
            {marker !== null && (
              <line class="marker" x1={across(marker)} x2={across(marker)} y1={kMargin.top} y2={bottom} />
            )}
            {series.map(({ name, points: some, kind, dots }) => (
              <g key={name} class={`series ${kind}`}>
                <path d={path([...some]) ?? ''} />
                {dots && some.map((point) => <circle key={point[0]} cx={across(point[0])} cy={up(point[1])} r="3" />)}
              </g>
            ))}
          </>
        )}
      </svg>
      {series.length > 1 && (
        <ul class="keys">
          {series.map(({ name, kind }) => (
            <li key={name}>
              <span class={`key-line ${kind}`} /> {name}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
