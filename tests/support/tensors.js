// Tensors in tests: plain { data, shape, dtype? }, their values as numbers, and comparisons that say where they differ.
import assert from 'node:assert/strict';
import { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from './float16.js';

export function elements(shape) {
  return shape.reduce((product, size) => product * size, 1);
}

/** The numbers that a tensor holds. */
export function valuesOf(tensor) {
  const { data, dtype } = tensor;
  if (!(data instanceof Uint16Array)) return data;
  return Float64Array.from(data, dtype === 'bfloat16' ? fromBfloat16 : fromFloat16);
}

/** The same tensor rounded to another type. */
export function cast({ data, shape }, dtype) {
  if (dtype === 'float32') return { data: Float32Array.from(data), shape };
  if (dtype === 'float16') return { data: Uint16Array.from(data, toFloat16), shape };
  return { data: Uint16Array.from(data, toBfloat16), shape, dtype };
}

/** Copies the data, so that `assertUnchanged` can tell later whether a call wrote to its inputs. */
export function remember(...tensors) {
  return tensors.map((tensor) => ({ data: tensor.data, copy: bytesOf(tensor.data).slice() }));
}

export function assertUnchanged(memories) {
  for (const { data, copy } of memories) assert.deepEqual(bytesOf(data), copy, 'an input was changed');
}

function bytesOf(data) {
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : Uint8Array.from(data);
}

/** |got - want| <= absolute + relative * |want| everywhere; NaN matches NaN, an infinity only itself. */
export function assertClose(got, want, { absolute = 1e-5, relative = 0, what = 'result' } = {}) {
  const gotValues = got.shape ? valuesOf(got) : got;
  const wantValues = want.shape ? valuesOf(want) : want;
  if (got.shape && want.shape) assert.deepEqual([...got.shape], [...want.shape], `${what}: shape`);
  assert.equal(gotValues.length, wantValues.length, `${what}: length`);
  let worst = -1;
  let excess = 0;
  for (let i = 0; i < wantValues.length; ++i) {
    const difference = distance(gotValues[i], wantValues[i]) - absolute - relative * Math.abs(finite(wantValues[i]));
    if (difference > excess) {
      excess = difference;
      worst = i;
    }
  }
  if (worst < 0) return;
  const where = want.shape ? `[${indexOf(worst, want.shape)}]` : worst;
  assert.fail(
    `${what} at ${where}: got ${gotValues[worst]}, want ${wantValues[worst]} (± ${absolute} + ${relative}·|want|)`,
  );
}

function distance(a, b) {
  if (Object.is(a, b) || a === b) return 0;
  const difference = Math.abs(a - b);
  return Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
}

function finite(value) {
  return Number.isFinite(value) ? value : 0;
}

function indexOf(flat, shape) {
  const index = [];
  for (let axis = shape.length - 1; axis >= 0; --axis) {
    index.unshift(flat % shape[axis]);
    flat = Math.floor(flat / shape[axis]);
  }
  return index.join(', ');
}

/** Equal bit for bit; any NaN equals any other. */
export function assertSameBits(got, want, what = 'result') {
  const gotData = got.data ?? got;
  const wantData = want.data ?? want;
  assert.equal(gotData.length, wantData.length, `${what}: length`);
  for (let i = 0; i < wantData.length; ++i) {
    if (!Object.is(gotData[i], wantData[i])) assert.fail(`${what} at ${i}: ${gotData[i]} is not ${wantData[i]}`);
  }
}

export function assertNoNaN(tensor, what = 'result') {
  assert.ok(!valuesOf(tensor).some(Number.isNaN), `${what} holds NaN`);
}

/** Where sequences of these lengths start when they are packed, and where the last one ends. */
export function starts(lengths) {
  const sums = new Int32Array(lengths.length + 1);
  for (const [n, length] of lengths.entries()) sums[n + 1] = sums[n] + length;
  return sums;
}

/** Rows `from` to `to` of one axis, as a tensor of its own. */
export function slice(tensor, axis, from, to) {
  const { data, shape, dtype } = tensor;
  const outer = elements(shape.slice(0, axis));
  const inner = elements(shape.slice(axis + 1));
  const count = to - from;
  const result = new data.constructor(outer * count * inner);
  for (let i = 0; i < outer; ++i) {
    const start = (i * shape[axis] + from) * inner;
    result.set(data.subarray(start, start + count * inner), i * count * inner);
  }
  return { data: result, shape: shape.with(axis, count), ...(dtype && { dtype }) };
}

/** Axes in another order, e.g. `transpose(x, [0, 2, 1, 3])` turns [B, H, T, D] into [B, T, H, D]. */
export function transpose(tensor, order) {
  const { data, shape, dtype } = tensor;
  const strides = shape.map((_, axis) => elements(shape.slice(axis + 1)));
  const newShape = order.map((axis) => shape[axis]);
  const result = new data.constructor(data.length);
  const index = new Array(shape.length).fill(0);
  for (let i = 0; i < result.length; ++i) {
    result[i] = data[order.reduce((sum, axis, position) => sum + index[position] * strides[axis], 0)];
    for (let axis = shape.length - 1; axis >= 0 && ++index[axis] === newShape[axis]; --axis) index[axis] = 0;
  }
  return { data: result, shape: newShape, ...(dtype && { dtype }) };
}

/** A new tensor of the same shape, its data written by `change`. */
export function edit(tensor, change) {
  const copy = { ...tensor, data: tensor.data.slice() };
  change(copy.data);
  return copy;
}

/** Reads a tensor of the stored fixtures: little-endian bytes in base64. */
export function decodeTensor({ dtype, shape, base64, data }) {
  if (data) return { data, shape, dtype };
  const bytes = Buffer.from(base64, 'base64');
  const types = { float32: Float32Array, float16: Uint16Array, bfloat16: Uint16Array, float64: Float64Array };
  const Type = types[dtype];
  if (!Type) throw new Error(`a fixture holds ${dtype}`);
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  return { data: new Type(buffer), shape, dtype };
}
