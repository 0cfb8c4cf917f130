// As much of protocol buffers' wire format as an ONNX model needs.

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value)); // negative numbers are written as 64 bits
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest ? low | 0x80 : low);
  } while (rest);
  return Buffer.from(bytes);
}

const tag = (field, wireType) => varint((field << 3) | wireType);

/** An integer field. */
export const integer = (field, value) => Buffer.concat([tag(field, 0), varint(value)]);

/** A float field. */
export function float(field, value) {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([tag(field, 5), bytes]);
}

/** A field of bytes, of text, or of a message's parts. */
export function message(field, ...parts) {
  const body = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
  return Buffer.concat([tag(field, 2), varint(body.length), body]);
}
