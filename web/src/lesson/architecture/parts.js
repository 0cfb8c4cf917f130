// The parts of a layer in numbers. An operation is one multiplication or one addition.
import { bytesText } from '../numbers.js';

/** @typedef {{ T: number, width: number, heads: number, kvHeads: number, D: number, inner: number, layers: number, vocabulary: number }} Sizes */
/**
 * @typedef {object} Part
 * @property {string} name @property {string} title @property {string} says
 * @property {string} shapes @property {number} parameters @property {number} flops @property {string} formula
 * @property {string} growth @property {string} memory
 */

const kFloat = 4;

/** @param {Sizes} sizes @param {boolean} hasRope @returns {Part[]} in the order of the computation */
export function partsOf(sizes, hasRope) {
  return [...projectionParts(sizes, hasRope), ...attentionParts(sizes), ...outputParts(sizes)];
}

/** @param {Sizes} sizes @param {boolean} hasRope @returns {Part[]} */
function projectionParts({ T, width, heads: H, kvHeads: G, D, inner }, hasRope) {
  const rows = (/** @type {number} */ columns) => bytesText(kFloat * T * columns);
  const norm = {
    ...{
      name: 'norm',
      title: 'Norm',
      says: 'Brings each hidden state to the same length, so that scores don’t grow with depth.',
    },
    ...{ shapes: `[${T}, ${width}] → [${T}, ${width}]`, parameters: width, flops: 4 * T * width, formula: '4·T·d' },
    ...{ growth: 'T', memory: rows(width) },
  };
  return [
    ...(inner > 0 ? [norm] : []),
    {
      ...{ name: 'q', title: 'Query projection', says: 'One matrix makes the queries of all heads.' },
      ...{ shapes: `[${T}, ${width}] · [${width}, ${H * D}] → [${H}, ${T}, ${D}]`, parameters: width * H * D },
      ...{ flops: 2 * T * width * H * D, formula: '2·T·d·H·D', growth: 'T', memory: rows(H * D) },
    },
    {
      ...{
        name: 'kv',
        title: 'Key and value projections',
        says: 'Two matrices; with fewer key/value heads they are smaller, and so is the cache that keeps their results.',
      },
      ...{
        shapes: `[${T}, ${width}] · [${width}, ${2 * G * D}] → 2 × [${G}, ${T}, ${D}]`,
        parameters: 2 * width * G * D,
      },
      ...{ flops: 4 * T * width * G * D, formula: '4·T·d·Hkv·D', growth: 'T' },
      memory: `${rows(2 * G * D)}, kept for the tokens to come`,
    },
    ...(hasRope
      ? [
          {
            ...{
              name: 'rope',
              title: 'RoPE',
              says: 'Turns queries and keys by their positions. No parameters: the angles are given.',
            },
            ...{ shapes: `[${H}, ${T}, ${D}] and [${G}, ${T}, ${D}]`, parameters: 0, flops: 3 * T * (H + G) * D },
            ...{ formula: '3·T·(H + Hkv)·D', growth: 'T', memory: 'in place' },
          },
        ]
      : []),
  ];
}

/** @param {Sizes} sizes @returns {Part[]} */
function attentionParts({ T, heads: H, D }) {
  const matrix = bytesText(kFloat * H * T * T);
  return [
    {
      ...{
        name: 'scores',
        title: 'Products QKᵀ / √d',
        says: 'Every query meets every key. With the causal mask half of it can be left out.',
      },
      ...{ shapes: `[${H}, ${T}, ${D}] · [${H}, ${D}, ${T}] → [${H}, ${T}, ${T}]`, parameters: 0 },
      ...{ flops: 2 * H * T * T * D, formula: '2·H·T²·D', growth: 'T²: twice the text, four times the work' },
      memory: `${matrix} as a whole; the fused kernel keeps one tile`,
    },
    {
      ...{
        name: 'softmax',
        title: 'Mask and softmax',
        says: 'Row by row: highest, exp, sum, division. The fused kernel does it on the way, with a running highest and sum.',
      },
      ...{ shapes: `[${H}, ${T}, ${T}]`, parameters: 0, flops: 5 * H * T * T, formula: '5·H·T²', growth: 'T²' },
      memory: `${matrix} as a whole; fused ${bytesText(2 * kFloat * H * T)}: two numbers a row`,
    },
    {
      ...{ name: 'mix', title: 'Sum of the values', says: 'The sum of the values, each times its weight.' },
      ...{ shapes: `[${H}, ${T}, ${T}] · [${H}, ${T}, ${D}] → [${H}, ${T}, ${D}]`, parameters: 0 },
      ...{ flops: 2 * H * T * T * D, formula: '2·H·T²·D', growth: 'T²', memory: bytesText(kFloat * H * T * D) },
    },
  ];
}

/** @param {Sizes} sizes @returns {Part[]} */
function outputParts({ T, width, heads: H, D, inner }) {
  const out = {
    ...{
      name: 'out',
      title: 'Output projection',
      says: 'Mixes the heads and brings them back to the width of the hidden states.',
    },
    ...{ shapes: `[${T}, ${H * D}] · [${H * D}, ${width}] → [${T}, ${width}]`, parameters: H * D * width },
    ...{ flops: 2 * T * H * D * width, formula: '2·T·H·D·d', growth: 'T', memory: bytesText(kFloat * T * width) },
  };
  const mlp = {
    ...{
      name: 'mlp',
      title: 'Norm and MLP',
      says: 'Each token by itself: wider, through a gate, and back. Most of the parameters are here.',
    },
    ...{ shapes: `[${T}, ${width}] → [${T}, ${inner}] → [${T}, ${width}]`, parameters: 3 * width * inner + width },
    ...{ flops: 6 * T * width * inner, formula: '6·T·d·inner', growth: 'T', memory: bytesText(2 * kFloat * T * inner) },
  };
  return [out, ...(inner > 0 ? [mlp] : [])];
}
