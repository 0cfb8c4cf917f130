// What the tests of field cases share.
import assert from 'node:assert/strict';
import { random, seedOf } from './random.js';
import { elements } from './tensors.js';

/** Few rows; many keys; several tiles of rows and keys, none of them whole. All dimensions differ. */
export const fieldSizes = [
  { B: 2, H: 3, Tq: 4, Tk: 6, D: 5, Dv: 7 },
  { B: 2, H: 3, Tq: 4, Tk: 150, D: 16, Dv: 9 },
  { B: 2, H: 3, Tq: 70, Tk: 201, D: 8, Dv: 12 },
];

export function tensors(name, { B = 1, H = 1, Hkv = H, Tq, Tk, D, Dv = D }) {
  const g = random(seedOf(name));
  return { g, q: g.tensor([B, H, Tq, D]), k: g.tensor([B, Hkv, Tk, D]), v: g.tensor([B, Hkv, Tk, Dv]) };
}

/** One head, one channel: [1, 1, T, 1]. */
export function column(values) {
  return { data: Float32Array.from(values), shape: [1, 1, values.length, 1] };
}

/** A predicate for `assert.throws`: an AttentionError with this code whose message holds all the words. */
export function errorNaming(code, ...words) {
  return (error) => {
    assert.equal(error.name, 'AttentionError', String(error));
    assert.equal(error.code, code, error.message);
    for (const word of words) assert.ok(error.message.includes(word), `"${word}" is not in: ${error.message}`);
    return true;
  };
}

/** Broadcasts a mask from the right to all of [B, H, Tq, Tk]. */
export function expand({ data, shape }, full) {
  const sizes = [...new Array(4 - shape.length).fill(1), ...shape];
  const result = new data.constructor(elements(full));
  for (let n = 0; n < result.length; ++n) {
    let rest = n;
    let at = 0;
    let stride = 1;
    for (let axis = 3; axis >= 0; --axis) {
      if (sizes[axis] > 1) at += (rest % full[axis]) * stride;
      rest = Math.floor(rest / full[axis]);
      stride *= sizes[axis];
    }
    result[n] = data[at];
  }
  return { data: result, shape: full };
}
