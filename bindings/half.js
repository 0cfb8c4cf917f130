// Half-precision bits to float32 and back, for the few values that JavaScript itself has to touch.

/** @import { Dtype } from './types.js' */

const kFloat = new Float32Array(1);
const kBits = new Uint32Array(kFloat.buffer);

/**
 * @param {number} bits
 * @param {Dtype} dtype
 */
export function fromHalf(bits, dtype) {
  if (dtype === 'bfloat16') {
    kBits[0] = bits << 16;
    return kFloat[0];
  }
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/**
 * Rounds to nearest, ties to even.
 * @param {number} value
 * @param {Dtype} dtype
 */
export function toHalf(value, dtype) {
  kFloat[0] = value;
  const bits = kBits[0];
  const isNotANumber = Number.isNaN(value);
  if (dtype === 'bfloat16') return isNotANumber ? 0x7fc0 : ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = Math.abs(value);
  if (isNotANumber) return 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;
  if (magnitude < 2 ** -14) {
    // The last place of 0.5 is 2^-24, the unit of subnormals: the addition itself rounds to it.
    kFloat[0] = magnitude + 0.5;
    return sign | (kBits[0] - 0x3f000000);
  }
  // Drop 13 bits of fraction with rounding and move the exponent's bias from 127 to 15; a carry lands in the exponent.
  return sign | ((((bits & 0x7fffffff) + 0xfff + ((bits >>> 13) & 1)) >>> 13) - (112 << 10));
}
