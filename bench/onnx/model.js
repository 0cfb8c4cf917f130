// ONNX models as bytes. Field numbers are those of onnx.proto.
import { concatenated, float, integer, message } from './protobuf.js';

const kTypes = { float32: 1, int32: 6, int64: 7 };
const kMicrosoft = 'com.microsoft';

/**
 * @typedef {{ op: string, domain?: string, inputs: string[], outputs: string[], attributes?: Record<string, number | readonly number[] | string | { float: number }> }} Node
 *   an empty name: an optional input that isn't given. Plain numbers are integer attributes
 * @typedef {{ type?: 'float32' | 'int32' | 'int64', dims: readonly number[] }} Value
 * @typedef {Value & { data: ArrayBufferView }} Constant
 */

/**
 * @param {{ inputs: Record<string, Value>, outputs: Record<string, Value>, constants?: Record<string, Constant>, nodes: Node[] }} graph
 * @returns {Uint8Array}
 */
export function onnxModel({ inputs, outputs, constants = {}, nodes }) {
  const graph = [
    ...nodes.map((node) => message(1, ...nodeParts(node))),
    message(2, 'bench'),
    ...Object.entries(constants).map(([name, constant]) => message(5, ...tensorParts(name, constant))),
    ...Object.entries(inputs).map(([name, value]) => message(11, ...valueParts(name, value))),
    ...Object.entries(outputs).map(([name, value]) => message(12, ...valueParts(name, value))),
  ];
  const opset = (domain, version) => message(8, message(1, domain), integer(2, version));
  return concatenated([integer(1, 10), message(7, ...graph), opset('', 23), opset(kMicrosoft, 1)]);
}

function nodeParts({ op, domain = '', inputs, outputs, attributes = {} }) {
  return [
    ...inputs.map((name) => message(1, name)),
    ...outputs.map((name) => message(2, name)),
    message(4, op),
    ...Object.entries(attributes).map(([name, value]) => message(5, message(1, name), ...attributeParts(value))),
    message(7, domain),
  ];
}

function attributeParts(value) {
  if (Array.isArray(value)) return [...value.map((n) => integer(8, n)), integer(20, 7)];
  if (typeof value === 'string') return [message(4, value), integer(20, 3)];
  if (typeof value === 'object') return [float(2, value.float), integer(20, 1)];
  return [integer(3, value), integer(20, 2)];
}

function tensorParts(name, { type = 'float32', dims, data }) {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return [...dims.map((size) => integer(1, size)), integer(2, kTypes[type]), message(8, name), message(9, bytes)];
}

function valueParts(name, { type = 'float32', dims }) {
  const shape = dims.map((size) => message(1, integer(1, size)));
  return [message(1, name), message(2, message(1, integer(1, kTypes[type]), message(2, ...shape)))];
}
