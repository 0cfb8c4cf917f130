// The program that gives the numbers of the untrained layer again: its parameters are drawn from the same seed.
import { kDeviations } from '../engine/untrained.js';
import { rowLines, scoreLines, tameLines, weightLines } from './snippet.js';
import { written } from './written.js';

/** @import { MatrixView, Run } from '../types.js' */
/** @import { State } from '../state.js' */

/** As in engine/random.js, which the tests compare it with. */
const randomLines = [
  '// The same random numbers everywhere: FNV-1a of a text, mulberry32, Box and Muller.',
  'const hash = (text) => {',
  '  let bits = 0x811c9dc5;',
  '  for (let i = 0; i < text.length; i++) bits = Math.imul(bits ^ text.charCodeAt(i), 0x01000193);',
  '  return bits >>> 0;',
  '};',
  'const normals = (name, count, deviation) => {',
  "  let state = hash(seed + ' ' + name);",
  '  const uniform = () => {',
  '    state = (state + 0x6d2b79f5) >>> 0;',
  '    let bits = Math.imul(state ^ (state >>> 15), state | 1);',
  '    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);',
  '    return (((bits ^ (bits >>> 14)) >>> 0) + 0.5) / 2 ** 32;',
  '  };',
  '  return Float32Array.from({ length: count }, () => {',
  '    const radius = Math.sqrt(-2 * Math.log(uniform()));',
  '    return deviation * radius * Math.cos(2 * Math.PI * uniform());',
  '  });',
  '};',
];

const layerLines = [
  'const width = config.dModel;',
  'const stateDict = {};',
  'for (const [name, deviation] of Object.entries(deviations)) {',
  '  const data = normals(name, width ** 2, deviation / Math.sqrt(width));',
  "  stateDict[name + '.weight'] = { data, shape: [width, width] };",
  '}',
  '// One vector for each different token.',
  'const x = { data: new Float32Array(T * width), shape: [1, T, width] };',
  "tokens.forEach((token, i) => x.data.set(normals('token ' + token, width, 1), i * width));",
  '',
  'const attention = await load();',
  'const layer = attention.multiHeadAttention(config);',
  'layer.loadStateDict(stateDict);',
  'const { output, weights } = layer.forward(x, { needWeights: true });',
];

/** Queries and keys by hand: what the scores are made of. @param {boolean} hasRope */
const projectionLines = (hasRope) => [
  'const [H, kvHeads] = [config.numHeads, config.numHeads];',
  'const D = width / H;',
  'const project = (name) => {',
  "  const { data } = attention.linear({ data: x.data, shape: [T, width] }, stateDict[name + '.weight']);",
  '  const split = new Float32Array(data.length); // [H, T, D]',
  '  data.forEach((value, i) => {',
  '    const [t, head] = [Math.floor(i / width), Math.floor((i % width) / D)];',
  '    split[(head * T + t) * D + (i % D)] = value;',
  '  });',
  hasRope
    ? "  return attention.rope({ data: split, shape: [H, T, D] }, { style: 'half' });"
    : '  return { data: split, shape: [H, T, D] };',
  '};',
  "const result = { queries: [project('q_proj')], keys: [project('k_proj')] };",
];

/**
 * A module for Node: prints the row in focus of what is shown, and what the layer gives for it, as JSON.
 * @param {State} state @param {Run & { layer: NonNullable<Run['layer']> }} run @param {MatrixView} view
 */
export function layerSnippetOf(state, run, view) {
  const { config } = run.layer;
  const isScores = view.show === 'scores';
  return [
    "import { load } from 'attention-wasm';",
    '',
    `const tokens = ${written(run.tokens)};`,
    ...rowLines(state, view),
    `const seed = ${state.seed};`,
    `const config = ${written(config)};`,
    `const deviations = ${written(kDeviations)}; // times the root of the width`,
    '',
    ...randomLines,
    '',
    ...layerLines,
    '',
    ...(isScores
      ? [...projectionLines(Boolean(config.rope)), ...scoreLines(view, { scale: '1 / Math.sqrt(D)', logit: 'x' })]
      : [
          `const result = { attention: [{ layer: 0, heads: ${written([...Array(run.heads).keys()])}, weights }] };`,
          ...weightLines(view),
        ]),
    ...tameLines(view),
    '',
    'console.log(JSON.stringify({ row, values, output: Array.from(output.data.subarray(row * width, (row + 1) * width)) }));',
    'attention.dispose();',
    '',
  ].join('\n');
}
