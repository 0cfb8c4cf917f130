// Rotations that are refused.
import { ropeFrequencies } from '../support/package.js';
import { f32, q, v } from './zeros.js';

const rope = { style: 'half' };

/** Calls: name, call, code, message. */
export const kRopes = [
  [
    'rope without style',
    (a) => a.rope(q),
    'INVALID_OPTION',
    /^rope: style must be 'interleaved' \(pairs 2i, 2i\+1\) or 'half' \(pairs i, i\+d\/2\), got undefined/,
  ],
  ['rope of an unknown style', (a) => a.rope(q, { style: 'neox' }), 'INVALID_OPTION', /style must be .* got 'neox'/],
  ['rope with an unknown option', (a) => a.rope(q, { ...rope, theta: 1 }), 'INVALID_OPTION', /got 'theta'/],
  ['rope of rank 1', (a) => a.rope(f32(6), rope), 'INVALID_SHAPE', /x must have shape/],
  [
    'an odd rotaryDim',
    (a) => a.rope(q, { ...rope, rotaryDim: 3 }),
    'INVALID_OPTION',
    /rotaryDim must be an even integer of 2 to D = 6, got 3/,
  ],
  [
    'rotaryDim beyond D',
    (a) => a.rope(q, { ...rope, rotaryDim: 8 }),
    'INVALID_OPTION',
    /rotaryDim must be an even integer of 2 to D = 6, got 8/,
  ],
  ['rotaryDim 0', (a) => a.rope(q, { ...rope, rotaryDim: 0 }), 'INVALID_OPTION', /rotaryDim must be an even integer/],
  ['an odd D', (a) => a.rope(v, rope), 'INVALID_OPTION', /rotaryDim must be an even integer of 2 to D = 7, got 7/],
  ['base 0', (a) => a.rope(q, { ...rope, base: 0 }), 'INVALID_OPTION', /base must be a positive number, got 0/],
  ['base NaN', (a) => a.rope(q, { ...rope, base: Number.NaN }), 'INVALID_OPTION', /base must be a positive number/],
  [
    'positions of another length',
    (a) => a.rope(q, { ...rope, positions: [0, 1] }),
    'INVALID_SHAPE',
    /positions must have 3 elements, got 2/,
  ],
  [
    'positions of another shape',
    (a) => a.rope(q, { ...rope, positions: { data: [0, 1, 2], shape: [1, 3] } }),
    'INVALID_SHAPE',
    /positions must have shape \[3\] or \[2, 3\], got \[1, 3\]/,
  ],
  [
    'fractional positions',
    (a) => a.rope(q, { ...rope, positions: [0, 0.5, 1] }),
    'INVALID_OPTION',
    /positions\[1\] must be an integer/,
  ],
  [
    'positions as floats',
    (a) => a.rope(q, { ...rope, positions: new Float32Array(3) }),
    'INVALID_DTYPE',
    /positions must hold integers .* got Float32Array\(3\)/,
  ],
  [
    'positions of no form',
    (a) => a.rope(q, { ...rope, positions: 3 }),
    'INVALID_SHAPE',
    /positions must be a list of integers or \{ data, shape \}/,
  ],
  [
    'positions and offset',
    (a) => a.rope(q, { ...rope, positions: [0, 1, 2], offset: 1 }),
    'INVALID_OPTION',
    /offset must not be given beside positions, got 1/,
  ],
  ['a fractional offset', (a) => a.rope(q, { ...rope, offset: 0.5 }), 'INVALID_OPTION', /offset must be an integer/],
  [
    'offsets of another batch',
    (a) => a.rope(q, { ...rope, offset: [1] }),
    'INVALID_SHAPE',
    /offset must have 2 elements, got 1/,
  ],
  ['inverse as a number', (a) => a.rope(q, { ...rope, inverse: 1 }), 'INVALID_OPTION', /inverse must be true or false/],
  [
    'a negative sequenceLength',
    (a) => a.rope(q, { ...rope, sequenceLength: -1 }),
    'INVALID_OPTION',
    /sequenceLength must be an integer of 0/,
  ],
  [
    'sections of two streams',
    (a) => a.rope(q, { ...rope, mropeSection: [1, 2] }),
    'INVALID_SHAPE',
    /mropeSection must be 3 or 4 numbers of pairs with sum rotaryDim\/2 = 3, got \[1, 2\]/,
  ],
  [
    'sections of another sum',
    (a) => a.rope(q, { ...rope, mropeSection: [1, 1, 2] }),
    'INVALID_SHAPE',
    /mropeSection must be 3 or 4 numbers/,
  ],
  [
    'four interleaved sections',
    (a) => a.rope(q, { ...rope, mropeSection: [1, 1, 1, 0], mropeInterleaved: true }),
    'INVALID_SHAPE',
    /mropeSection must have 3 numbers when interleaved/,
  ],
  [
    'interleaved without sections',
    (a) => a.rope(q, { ...rope, mropeInterleaved: true }),
    'INVALID_OPTION',
    /mropeInterleaved must come with mropeSection/,
  ],
  [
    'streams of another number',
    (a) => a.rope(q, { ...rope, mropeSection: [1, 1, 1], positions: { data: Array(6).fill(0), shape: [2, 3] } }),
    'INVALID_SHAPE',
    /positions must have shape \[3\] or \[3, 3\] or \[3, 2, 3\], got \[2, 3\]/,
  ],
  [
    'tables without positions',
    (a) => a.ropeTables({ rotaryDim: 4 }),
    'INVALID_OPTION',
    /^ropeTables: either positions or length must be given, got undefined/,
  ],
  [
    'tables with positions and length',
    (a) => a.ropeTables({ rotaryDim: 4, length: 3, positions: [0] }),
    'INVALID_OPTION',
    /either positions or length must be given, got 3/,
  ],
  [
    'tables without rotaryDim',
    (a) => a.ropeTables({ length: 3 }),
    'INVALID_OPTION',
    /rotaryDim must be an even integer of 2 to 1048576, got undefined/,
  ],
  [
    'tables of a fractional length',
    (a) => a.ropeTables({ rotaryDim: 4, length: 1.5 }),
    'INVALID_OPTION',
    /length must be an integer/,
  ],
  [
    'sections missing in an mrope scaling',
    (a) => a.rope(q, { ...rope, scaling: { type: 'mrope' } }),
    'INVALID_OPTION',
    /scaling of type 'mrope' must have mrope_section/,
  ],
  [
    'tables beside positions',
    (a) => a.rope(q, { ...rope, positions: [0, 1, 2], tables: { cos: f32(3, 3), sin: f32(3, 3) } }),
    'INVALID_OPTION',
    /positions must not be given beside tables/,
  ],
  [
    'tables of another length',
    (a) => a.rope(q, { ...rope, tables: { cos: f32(4, 3), sin: f32(4, 3) } }),
    'INVALID_SHAPE',
    /tables\.cos must have shape .* got \[4, 3\]/,
  ],
  [
    'tables wider than D',
    (a) => a.rope(q, { ...rope, tables: { cos: f32(3, 4), sin: f32(3, 4) } }),
    'INVALID_SHAPE',
    /tables\.cos must have shape .* d of 2 to 6/,
  ],
  [
    'tables of two shapes',
    (a) => a.rope(q, { ...rope, tables: { cos: f32(3, 3), sin: f32(3, 2) } }),
    'INVALID_SHAPE',
    /tables\.sin must have the shape of tables\.cos, got \[3, 2\]/,
  ],
  [
    'tables in bits',
    (a) => {
      const bits = { data: new Uint16Array(9), shape: [3, 3] };
      a.rope(q, { ...rope, tables: { cos: bits, sin: bits } });
    },
    'INVALID_DTYPE',
    /tables must be float32, got 'float16'/,
  ],
];

const scaled =
  (scaling, more = {}) =>
  () =>
    ropeFrequencies({ rotaryDim: 8, scaling, ...more });

/** Scalings of RoPE: name, call, message; the code is INVALID_OPTION. */
export const kScalings = [
  ['no rotaryDim', () => ropeFrequencies({}), /^ropeFrequencies: rotaryDim must be an even integer of 2/],
  ['no options', () => ropeFrequencies(), /rotaryDim must be an even integer/],
  ['an unknown option', () => ropeFrequencies({ rotaryDim: 8, theta: 1 }), /got 'theta'/],
  [
    'an unknown type',
    scaled({ rope_type: 'ntk', factor: 2 }),
    /scaling\.rope_type must be among default, linear, dynamic, yarn, longrope, llama3, proportional, got 'ntk'/,
  ],
  ['an unknown older type', scaled({ type: 'ntk', factor: 2 }), /scaling\.rope_type must be among .* got 'ntk'/],
  ['a type from the prototype', scaled({ type: 'toString' }), /scaling\.rope_type must be among .* got 'toString'/],
  ['a factor without a type', scaled({ factor: 2 }), /scaling\.rope_type must be among .* got undefined/],
  [
    'two types',
    scaled({ rope_type: 'linear', type: 'yarn', factor: 2 }),
    /scaling\.rope_type and scaling\.type must agree, got \['linear', 'yarn'\]/,
  ],
  [
    'an unknown entry',
    scaled({ rope_type: 'linear', factor: 2, facter: 3 }),
    /scaling: options must be among .* got 'facter'/,
  ],
  ['scaling as text', scaled('linear'), /scaling: options must be an object, got 'linear'/],
  ['linear without factor', scaled({ rope_type: 'linear' }), /scaling of type 'linear' must have factor/],
  ['factor 0', scaled({ rope_type: 'linear', factor: 0 }), /scaling\.factor must be a positive number, got 0/],
  [
    'factor as text',
    scaled({ rope_type: 'linear', factor: '2' }),
    /scaling\.factor must be a positive number, got '2'/,
  ],
  [
    'dynamic without a length',
    scaled({ rope_type: 'dynamic', factor: 2 }),
    /scaling of type 'dynamic' must have original_max_position_embeddings or max_position_embeddings/,
  ],
  ['yarn without a length', scaled({ rope_type: 'yarn', factor: 2 }), /scaling of type 'yarn' must have original_max/],
  [
    'yarn without a factor',
    scaled({ rope_type: 'yarn', original_max_position_embeddings: 64 }),
    /scaling of type 'yarn' must have factor, or both lengths/,
  ],
  [
    'yarn of base 1',
    scaled({ rope_type: 'yarn', factor: 2, original_max_position_embeddings: 64 }, { base: 1 }),
    /must have a base other than 1/,
  ],
  [
    'yarn with a wrong mscale',
    scaled({ rope_type: 'yarn', factor: 2, original_max_position_embeddings: 64, mscale: 'x' }),
    /scaling\.mscale must be a number/,
  ],
  [
    'longrope without lists',
    scaled({ rope_type: 'longrope', factor: 2, original_max_position_embeddings: 64 }),
    /must have short_factor, 4 positive numbers/,
  ],
  [
    'longrope with a short list',
    scaled({
      rope_type: 'longrope',
      factor: 2,
      original_max_position_embeddings: 64,
      short_factor: [1, 1, 1, 1],
      long_factor: [1, 1, 1],
    }),
    /must have long_factor, 4 positive numbers/,
  ],
  ['llama3 without factor', scaled({ rope_type: 'llama3' }), /scaling of type 'llama3' must have factor/],
  [
    'llama3 with factors in the wrong order',
    scaled({ rope_type: 'llama3', factor: 8, low_freq_factor: 4, high_freq_factor: 4 }),
    /must have high_freq_factor above low_freq_factor/,
  ],
  [
    'a partial factor above 1',
    scaled({ rope_type: 'proportional', partial_rotary_factor: 2 }),
    /scaling\.partial_rotary_factor must be a number of 0 to 1, got 2/,
  ],
  [
    'two bases',
    scaled({ rope_type: 'default', rope_theta: 5 }, { base: 6 }),
    /base must be that of scaling\.rope_theta, 5, where both are given, got 6/,
  ],
  [
    'mrope without sections',
    () => ropeFrequencies({ rotaryDim: 8, scaling: { type: 'mrope', factor: -1 } }),
    /scaling\.factor must be a positive number/,
  ],
  [
    'a negative length',
    scaled({ rope_type: 'dynamic', factor: 2, max_position_embeddings: -1 }),
    /maxPositionEmbeddings must be a positive number/,
  ],
];
