// Layers, parameters and calls of forward() that are refused.
import { f32 } from './zeros.js';

export const layer = { dModel: 6, numHeads: 2 };

/** Layers: name, options, code, message. */
export const kLayers = [
  ['no size', {}, 'INVALID_OPTION', /^multiHeadAttention: dModel must be an integer of 1 to 16777216, got undefined/],
  ['no options', undefined, 'INVALID_OPTION', /dModel must be an integer/],
  ['an unknown option', { ...layer, dropout: 0.1 }, 'INVALID_OPTION', /options must be among dModel, .* got 'dropout'/],
  ['a fractional size', { ...layer, dModel: 6.5 }, 'INVALID_OPTION', /dModel must be an integer/],
  ['no heads', { ...layer, numHeads: 0 }, 'INVALID_OPTION', /numHeads must be an integer of 1/],
  [
    'heads that do not divide dModel',
    { ...layer, numHeads: 4 },
    'INVALID_OPTION',
    /dModel must be a multiple of numHeads = 4 unless headDim is given, got 6/,
  ],
  [
    'key heads that do not divide',
    { ...layer, headDim: 4, numHeads: 4, numKvHeads: 3 },
    'INVALID_OPTION',
    /numKvHeads must divide numHeads = 4, got 3/,
  ],
  ['bias as a number', { ...layer, bias: 1 }, 'INVALID_OPTION', /bias must be true or false/],
  [
    'rope without style',
    { ...layer, headDim: 4, rope: {} },
    'INVALID_OPTION',
    /multiHeadAttention: rope: style must be/,
  ],
  [
    'rope over an odd head',
    { ...layer, rope: { style: 'half' } },
    'INVALID_OPTION',
    /rope: rotaryDim must be an even integer of 2 to D = 3, got 3/,
  ],
  [
    'rope with an unknown option',
    { ...layer, headDim: 4, rope: { style: 'half', theta: 1 } },
    'INVALID_OPTION',
    /got 'theta'/,
  ],
  [
    'norms with an unknown option',
    { ...layer, qkNorm: { eps: 1 } },
    'INVALID_OPTION',
    /^multiHeadAttention: qkNorm: options must be among epsilon, got 'eps'/,
  ],
  ['norms as a number', { ...layer, qkNorm: 1 }, 'INVALID_OPTION', /qkNorm: options must be an object, got 1/],
  ['norms with a negative epsilon', { ...layer, qkNorm: { epsilon: -1 } }, 'INVALID_OPTION', /epsilon must be 0 or/],
  ['a negative softcap', { ...layer, softcap: -1 }, 'INVALID_OPTION', /softcap must be 0/],
  ['a wrong window', { ...layer, windowSize: [-2, 0] }, 'INVALID_OPTION', /windowSize\[0\] must be an integer/],
  ['an unknown causal', { ...layer, isCausal: 'up' }, 'INVALID_OPTION', /isCausal must be true/],
  [
    'sinks of other heads',
    { ...layer, sinks: new Float32Array(3) },
    'INVALID_SHAPE',
    /sinks must have shape \[H\] = \[2\], got \[3\]/,
  ],
];

const state = () =>
  Object.fromEntries(['q_proj', 'k_proj', 'v_proj', 'out_proj'].map((name) => [`${name}.weight`, f32(6, 6)]));
const without = (name) => Object.fromEntries(Object.entries(state()).filter(([key]) => key !== name));

/** State dicts of `layer`: name, dict, code, message. */
export const kStates = [
  [
    'none',
    undefined,
    'INVALID_OPTION',
    /^MultiHeadAttention\.loadStateDict: dict must be an object of tensors by name, got undefined/,
  ],
  [
    'a missing tensor',
    without('k_proj.weight'),
    'INVALID_OPTION',
    /dict must hold k_proj\.weight of shape \[6, 6\], got 'v_proj\.weight, out_proj\.weight'/,
  ],
  [
    'a surplus tensor',
    { ...state(), 'q_proj.bias': f32(6) },
    'INVALID_OPTION',
    /dict must hold the parameters of the layer alone \(without bias\), got 'q_proj\.bias of shape \[6\]'/,
  ],
  [
    'a wrong shape',
    { ...state(), 'v_proj.weight': f32(6, 5) },
    'INVALID_SHAPE',
    /v_proj\.weight must have shape \[6, 6\], got \[6, 5\]/,
  ],
  [
    'a wrong packed shape',
    { in_proj_weight: f32(12, 6), 'out_proj.weight': f32(6, 6) },
    'INVALID_SHAPE',
    /in_proj_weight must have shape \[18, 6\], got \[12, 6\]/,
  ],
  [
    'a type that is not accepted',
    { ...state(), 'v_proj.weight': { data: new Float64Array(36), shape: [6, 6] } },
    'INVALID_DTYPE',
    /v_proj\.weight\.data must be a Float32Array/,
  ],
];

export const x = f32(2, 3, 6);

/** Calls of forward: name, layer options beside `layer`, x, options, code, message. */
export const kForwards = [
  [
    'x of another width',
    {},
    f32(2, 3, 5),
    {},
    'INVALID_SHAPE',
    /^MultiHeadAttention\.forward: x must have shape \[B, T, 6\], got \[2, 3, 5\]/,
  ],
  ['x of rank 4', {}, f32(1, 2, 3, 6), {}, 'INVALID_SHAPE', /x must have shape/],
  ['an unknown option', {}, x, { mask: null }, 'INVALID_OPTION', /options must be among context, .* got 'mask'/],
  [
    'a context of another rank',
    {},
    x,
    { context: f32(4, 6) },
    'INVALID_SHAPE',
    /context must have shape \[B, T, 6\], got \[4, 6\]/,
  ],
  [
    'a context of another batch',
    {},
    x,
    { context: f32(3, 4, 6) },
    'INVALID_SHAPE',
    /context must have the batch of x, B = 2, got \[3, 4, 6\]/,
  ],
  [
    'a context in two lengths',
    {},
    x,
    { context: { key: f32(2, 4, 6), value: f32(2, 5, 6) } },
    'INVALID_SHAPE',
    /context\.value must have the tokens of context\.key/,
  ],
  ['a cache that is none', {}, x, { cache: {} }, 'INVALID_OPTION', /cache must be a KeyValueCache, got an object/],
  [
    'a context with rope',
    { headDim: 4, rope: { style: 'half' } },
    x,
    { context: f32(2, 4, 6) },
    'INVALID_OPTION',
    /context must not be given to a layer with rope/,
  ],
  [
    'positions without rope',
    {},
    x,
    { positions: [0, 1, 2] },
    'INVALID_OPTION',
    /positions must come with a layer that has rope/,
  ],
  [
    'positions of another length',
    { headDim: 4, rope: { style: 'half' } },
    x,
    { positions: [0, 1] },
    'INVALID_SHAPE',
    /positions must have 3 elements/,
  ],
  [
    'lengths beyond T',
    {},
    x,
    { keyLengths: [4, 1] },
    'INVALID_OPTION',
    /keyLengths\[0\] must be an integer of 0 to 3, got 4/,
  ],
  [
    'a mask that does not broadcast',
    {},
    x,
    { attnMask: { data: new Uint8Array(8), shape: [2, 4] } },
    'INVALID_SHAPE',
    /attnMask must broadcast to \[B, H, Tq, Tk\] = \[2, 2, 3, 3\]/,
  ],
  [
    'causal true over a longer context',
    { isCausal: true },
    x,
    { context: f32(2, 4, 6) },
    'INVALID_OPTION',
    /isCausal must be 'top-left' or 'bottom-right'/,
  ],
];
