// As much of protocol buffers' wire format as an ONNX model needs, in Node and in browsers.

/** @param {Uint8Array[]} parts @returns {Uint8Array} */
export function concatenated(parts) {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value)); // negative numbers are written as 64 bits
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest ? low | 0x80 : low);
  } while (rest);
  return Uint8Array.from(bytes);
}

const tag = (field, wireType) => varint((field << 3) | wireType);

/** An integer field. */
export const integer = (field, value) => concatenated([tag(field, 0), varint(value)]);

/** A float field. */
export function float(field, value) {
  const bytes = new DataView(new ArrayBuffer(4));
  bytes.setFloat32(0, value, true);
  return concatenated([tag(field, 5), new Uint8Array(bytes.buffer)]);
}

/** A field of bytes, of text, or of a message's parts. */
export function message(field, ...parts) {
  const body = concatenated(parts.map((part) => (typeof part === 'string' ? new TextEncoder().encode(part) : part)));
  return concatenated([tag(field, 2), varint(body.length), body]);
}
