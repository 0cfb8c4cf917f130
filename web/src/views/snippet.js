// The program that gives the numbers of a model again, with the package alone.
import { attentionOptions } from '../engine/rules.js';
import { written } from './written.js';

/** @import { MatrixView, ModelInfo, Run } from '../types.js' */
/** @import { State } from '../state.js' */
/** @import { Trained } from '../engine/rules.js' */

/**
 * A module for Node: prints the row in focus of what is shown, and the likeliest next tokens, as JSON.
 * @param {State} state @param {Run} run @param {MatrixView} view @param {ModelInfo} model
 */
export function snippetOf(state, run, view, model) {
  const change = attentionOptions(state, model.attention);
  const layers = [
    ...new Set(view.combine === 'rollout' ? [...Array(run.layers).keys()] : view.of.map(([layer]) => layer)),
  ];
  const isScores = view.show === 'scores';
  const capture = isScores ? { queries: true, keys: true } : { attention: { layers } };
  return [
    ...loadLines(state),
    '',
    `const tokens = ${written(run.ids)};`,
    ...rowLines(state, view),
    ...(state.off.length > 0 ? [`model.disabledHeads = ${written(state.off)};`] : []),
    `const run = (options) => model.forward(tokens, { logits: 'all', capture: ${written(capture)}, ...options });`,
    `const result = run(${change ? `{ attention: ${written(change)} }` : '{}'});`,
    '',
    ...(isScores ? modelScoreLines(state, view, model.attention) : weightLines(view)),
    ...(view.show === 'change' ? changeLines(state) : []),
    ...tameLines(view),
    ...nextLines,
    '',
  ].join('\n');
}

/** @param {State} state */
function loadLines({ model }) {
  const isOwn = model === 'own'; // in as many files as it has
  const files = isOwn ? '*.safetensors' : 'model.safetensors';
  return [
    `import { ${isOwn ? 'readdir, ' : ''}readFile } from 'node:fs/promises';`,
    "import { load } from 'attention-wasm';",
    "import { Transformer } from 'attention-wasm/transformer';",
    '',
    `// config.json and ${files} of the model, from this folder:`,
    "const folder = process.argv[2] ?? '.';",
    ...(isOwn ? ["const files = (await readdir(folder)).filter((name) => name.endsWith('.safetensors')).sort();"] : []),
    'const attention = await load();',
    'const model = await Transformer.load(attention, {',
    "  config: JSON.parse(await readFile(folder + '/config.json', 'utf8')),",
    isOwn
      ? "  weights: await Promise.all(files.map((name) => readFile(folder + '/' + name))),"
      : "  weights: await readFile(folder + '/model.safetensors'),",
    '});',
  ];
}

/** @param {State} state @param {MatrixView} view */
export const rowLines = (state, view) => [
  `const row = ${state.focus.row};`,
  `const heads = ${written(view.of)}; // [layer, head]`,
  'const T = tokens.length;',
];

/** @param {MatrixView} view */
export function weightLines(view) {
  return [
    'const weightsOf = ({ attention }, [layer, head], row) => {',
    '  const { heads, weights } = attention.find((each) => each.layer === layer);',
    '  const first = (heads.indexOf(head) * T + row) * T;',
    '  return Array.from(weights.data.subarray(first, first + T));',
    '};',
    ...combineLines(view, 'weightsOf(result, head, row)'),
  ];
}

/** @param {State} state @param {MatrixView} view @param {readonly Trained[]} trained */
function modelScoreLines(state, view, trained) {
  const { scale } = /** @type {{ scale?: number }} */ (attentionOptions(state, trained) ?? {});
  const cap = state.softcap;
  return [
    'const { heads: H, kvHeads, headDim: D } = model.info;',
    ...scoreLines(view, {
      scale: scale === undefined ? 'model.info.attention[layer].scale' : String(scale),
      logit: `${cap > 0 ? `${cap} * Math.tanh(x / ${cap})` : 'x'}${state.temperature === 1 ? '' : ` / ${state.temperature}`}`,
    }),
  ];
}

/** @param {MatrixView} view @param {{ scale: string, logit: string }} how written in JavaScript; `logit` of x */
export function scoreLines(view, { scale, logit }) {
  return [
    'const scoresOf = ({ queries, keys }, [layer, head], row) => {',
    '  const q = queries[layer].data.subarray((head * T + row) * D, (head * T + row + 1) * D);',
    '  const group = Math.floor((head * kvHeads) / H);',
    `  const scale = ${scale};`,
    '  return tokens.map((_, j) => {',
    '    const k = keys[layer].data.subarray((group * T + j) * D, (group * T + j + 1) * D);',
    '    const x = scale * q.reduce((sum, value, i) => sum + value * k[i], 0);',
    `    return ${logit};`,
    '  });',
    '};',
    ...combineLines(view, 'scoresOf(result, head, row)'),
  ];
}

/** @param {Pick<MatrixView, 'combine'>} view @param {string} one */
function combineLines({ combine }, one) {
  if (combine === 'rollout') {
    return [
      '// Attention rollout: ½ mean of the heads + ½ identity, layer upon layer.',
      'const identity = tokens.map((_, i) => tokens.map((_, j) => (i === j ? 1 : 0)));',
      'const valuesOf = (result) => {',
      '  let rows = identity;',
      '  for (const { layer, heads: all } of result.attention) {',
      '    const step = tokens.map((_, i) => {',
      '      const each = all.map((head) => weightsOf(result, [layer, head], i));',
      '      return tokens.map((_, j) => each.reduce((sum, w) => sum + w[j], 0) / (2 * all.length) + (i === j ? 0.5 : 0));',
      '    });',
      '    const former = rows;',
      '    rows = step.map((w) => tokens.map((_, j) => w.reduce((sum, value, k) => sum + value * former[k][j], 0)));',
      '  }',
      '  return rows[row];',
      '};',
      'let values = valuesOf(result);',
    ];
  }
  const reduced =
    combine === 'one'
      ? ['  return rows[0];']
      : combine === 'mean'
        ? ['  return tokens.map((_, j) => rows.reduce((sum, values) => sum + values[j], 0) / rows.length);']
        : ['  return tokens.map((_, j) => Math.max(...rows.map((values) => values[j])));'];
  return [
    'const valuesOf = (result) => {',
    `  const rows = heads.map((head) => ${one});`,
    ...reduced,
    '};',
    'let values = valuesOf(result);',
  ];
}

/** @param {State} state */
function changeLines({ off }) {
  return [
    ...(off.length > 0 ? ['model.disabledHeads = [];'] : []),
    'const before = valuesOf(run({}));',
    'values = values.map((value, j) => value - before[j]);',
  ];
}

/** @param {MatrixView} view */
export function tameLines({ show, hideFirst, mass }) {
  if (show !== 'weights') return [];
  return [
    ...(hideFirst
      ? [
          'const rest = values.slice(1).reduce((sum, value) => sum + value, 0);',
          'values = values.map((value, j) => (j === 0 ? 0 : value / (rest || 1))); // without the first token',
        ]
      : []),
    ...(mass < 1
      ? [
          'const sorted = [...values].sort((a, b) => b - a);',
          'const total = sorted.reduce((sum, value) => sum + value, 0);',
          'let reached = 0;',
          `const least = sorted.find((value) => (reached += value) >= ${mass} * total);`,
          'values = values.map((value) => (value >= least ? value : 0)); // the fewest that reach the share',
        ]
      : []),
  ];
}

const nextLines = [
  '',
  'const { vocabulary } = model.info;',
  'const logits = result.logits.data.subarray(row * vocabulary, (row + 1) * vocabulary);',
  'const sum = logits.reduce((total, logit) => total + Math.exp(logit), 0);',
  'const next = [...logits.keys()]',
  '  .sort((a, b) => logits[b] - logits[a])',
  '  .slice(0, 10)',
  '  .map((id) => ({ id, probability: Math.exp(logits[id]) / sum }));',
  'console.log(JSON.stringify({ row, values, next }));',
  'attention.dispose();',
];
