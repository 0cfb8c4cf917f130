// Half-precision bits to numbers and back, from the definitions of the formats; independent of the package.

/** @param {number} bits IEEE 754 binary16 */
export function fromFloat16(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Rounds to nearest, ties to even. */
export function toFloat16(value) {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  if (magnitude >= 65520) return sign | 0x7c00;
  if (magnitude < 2 ** -14) return sign | roundEven(magnitude * 2 ** 24);
  const exponent = Math.floor(Math.log2(magnitude));
  // A fraction that rounds up to 1024 carries into the exponent, which is what the addition does.
  return sign | (((exponent + 15) << 10) + roundEven((magnitude / 2 ** exponent - 1) * 1024));
}

export function fromBfloat16(bits) {
  return new Float32Array(new Uint32Array([bits << 16]).buffer)[0];
}

/** Rounds a float32 to nearest, ties to even. */
export function toBfloat16(value) {
  if (Number.isNaN(value)) return 0x7fc0;
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0];
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

function roundEven(value) {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}
