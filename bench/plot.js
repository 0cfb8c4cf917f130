// The curves of scaling.js as an SVG: time and memory against length, both axes logarithmic, for light and dark pages.

const kPanel = { width: 330, height: 220, left: 58, top: 34, gapX: 70, gapY: 64 };
const kNames = { 'ours-relaxed': 'attention-wasm', 'ort-web': 'onnxruntime-web' };

// Colours that keep apart for most eyes, on white and on dark grey alike.
const kStyle = `
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 13px }
  .small { font-size: 11px; fill: #57606a }
  .grid { stroke: #d0d7de; stroke-width: 1 }
  .law { stroke: #8c959f; stroke-width: 1; stroke-dasharray: 4 4; fill: none }
  .curve { fill: none; stroke-width: 2 }
  .ours-relaxed { stroke: #0550ae } .ours-relaxed.dot, text.ours-relaxed { fill: #0550ae; stroke: none }
  .ort-web { stroke: #bc4c00 } .ort-web.dot, text.ort-web { fill: #bc4c00; stroke: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .small { fill: #9198a1 }
    .grid { stroke: #30363d }
    .law { stroke: #6e7681 }
    .ours-relaxed { stroke: #79c0ff } .ours-relaxed.dot, text.ours-relaxed { fill: #79c0ff }
    .ort-web { stroke: #ffa657 } .ort-web.dot, text.ort-web { fill: #ffa657 }
  }`;

/** @param {{ machine: { processor: string, node: string }, curves: Record<string, { title: string, points: Record<string, any[]> }> }} results */
export function plot({ machine, curves }) {
  const rows = Object.entries(curves);
  const width = kPanel.left + 2 * kPanel.width + kPanel.gapX + 20;
  const height = rows.length * (kPanel.height + kPanel.gapY) + 30;
  const panels = rows.flatMap(([name, { title, points }], row) => {
    const power = name === 'prefill' ? 2 : 1;
    return [
      panel(0, row, `${title}: time`, points, { value: 'minimum', show: milliseconds, power }),
      panel(1, row, 'wasm memory, tensors included', points, { value: 'heap', show: bytes, power: 1 }),
    ];
  });
  const note = `${escaped(machine.processor)}, Node ${machine.node}, one thread. Dashed: in proportion to T² (prefill) and T.`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">`,
    '<title>Time and memory against sequence length</title>',
    `<style>${kStyle}\n</style>`,
    ...panels,
    `<text class="small" x="${kPanel.left}" y="${height - 10}">${note}</text>`,
    '</svg>\n',
  ].join('\n');
}

const escaped = (text) => text.replace(/[<&]/g, (sign) => (sign === '<' ? '&lt;' : '&amp;'));
const milliseconds = (ms) => (ms >= 1000 ? `${ms / 1000} s` : ms >= 1 ? `${ms} ms` : `${Math.round(ms * 1000)} µs`);
const bytes = (count) =>
  count >= 2 ** 30 ? `${count / 2 ** 30} GiB` : count >= 2 ** 20 ? `${count / 2 ** 20} MiB` : `${count / 2 ** 10} KiB`;
const tokens = (count) => (count >= 1024 ? `${count / 1024}k` : String(count));

/** One pair of axes. `power`: the law that the dashed line shows, through the last point of ours. */
function panel(column, row, title, points, { value, show, power }) {
  const left = kPanel.left + column * (kPanel.width + kPanel.gapX);
  const top = kPanel.top + row * (kPanel.height + kPanel.gapY);
  const series = Object.entries(points).map(([id, list]) => [id, list.filter((point) => point[value] > 0)]);
  const all = series.flatMap(([, list]) => list);
  const base = value === 'heap' ? 2 : 10;
  const x = logarithmic(
    all.map(({ length }) => length),
    2,
    [left, left + kPanel.width],
  );
  const y = logarithmic(
    all.map((point) => point[value]),
    base,
    [top + kPanel.height, top],
  );
  const parts = [`<text class="title" x="${left}" y="${top - 12}">${title}</text>`];
  for (const tick of x.ticks(5)) parts.push(label(x(tick), top + kPanel.height + 16, tokens(tick), 'middle'));
  for (const tick of y.ticks(6)) {
    parts.push(`<path class="grid" d="M${left} ${y(tick).toFixed(1)}h${kPanel.width}"/>`);
    parts.push(label(left - 6, y(tick) + 4, show(tick), 'end'));
  }
  parts.push(law(series[0][1], value, power, x, y));
  for (const [id, list] of series) parts.push(...line(id, list, value, x, y));
  return parts.join('\n');
}

const label = (x, y, text, anchor) =>
  `<text class="small" x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}">${text}</text>`;

/** A scale from values to pixels, widened to whole powers of `base`. */
function logarithmic(values, base, [from, to]) {
  const log = (value) => Math.log(value) / Math.log(base);
  const low = Math.floor(log(Math.min(...values)) + 1e-9);
  const high = Math.max(Math.ceil(log(Math.max(...values)) - 1e-9), low + 1);
  const scale = (value) => from + ((log(value) - low) / (high - low)) * (to - from);
  /** At most so many powers, evenly spaced. */
  scale.ticks = (most) => {
    const step = Math.ceil((high - low + 1) / most);
    return Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, n) => base ** (low + n * step));
  };
  scale.low = base ** low;
  return scale;
}

function law(list, value, power, x, y) {
  const last = list.at(-1);
  if (!last) return '';
  const points = list
    .map(({ length }) => [length, last[value] * (length / last.length) ** power])
    .filter(([, height]) => height >= y.low);
  return `<polyline class="law" points="${points.map(([length, height]) => `${x(length).toFixed(1)},${y(height).toFixed(1)}`).join(' ')}"/>`;
}

function line(id, list, value, x, y) {
  const points = list.map((point) => [x(point.length), y(point[value])]);
  const last = points.at(-1);
  if (!last) return [];
  const below = id.startsWith('ours') ? 20 : -8; // where the other curve isn't
  return [
    `<polyline class="curve ${id}" points="${points.map((point) => point.map((n) => n.toFixed(1)).join(',')).join(' ')}"/>`,
    ...points.map(([px, py]) => `<circle class="dot ${id}" cx="${px.toFixed(1)}" cy="${py.toFixed(1)}" r="2.5"/>`),
    `<text class="${id}" x="${(last[0] - 8).toFixed(1)}" y="${(last[1] + below).toFixed(1)}" text-anchor="end">${kNames[id]}</text>`,
  ];
}
