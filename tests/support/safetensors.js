// Safetensors files of tensors.

const kDtypes = { float32: 'F32', float16: 'F16', bfloat16: 'BF16' };

/** Tensors { data, shape, dtype? }; a dtype in capitals is written as it stands. @returns {Uint8Array} */
export function safetensorsOf(tensors) {
  const header = {};
  const parts = [];
  let at = 0;
  for (const [name, { data, shape, dtype }] of Object.entries(tensors)) {
    const type = dtype ?? (data instanceof Float32Array ? 'float32' : 'float16');
    header[name] = { dtype: kDtypes[type] ?? type, shape, data_offsets: [at, at + data.byteLength] };
    parts.push(Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    at += data.byteLength;
  }
  const text = JSON.stringify(header);
  const length = Buffer.alloc(8);
  const padded = text.padEnd(Math.ceil(text.length / 8) * 8);
  length.writeBigUInt64LE(BigInt(padded.length));
  // A fresh buffer: Node's small ones stand anywhere in a shared one.
  return Uint8Array.from(Buffer.concat([length, Buffer.from(padded), ...parts]));
}
