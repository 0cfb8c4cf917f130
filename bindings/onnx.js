// ONNX operators over the package's functions, for those who port a graph.
//
// Names of inputs, outputs and attributes, layouts and defaults are the operators'; the arithmetic is the package's.
// A tensor is { data, shape, dtype? } or a resident Tensor; whole numbers may be BigInt64Array, Int32Array or an array.
// On a backend whose calls return promises, so do these.
export { onnxAttention } from './onnx-attention.js';
export { onnxRMSNormalization, onnxSoftmax } from './onnx-norm.js';
export { onnxRotaryEmbedding } from './onnx-rotary-embedding.js';
export { onnxTensorScatter } from './onnx-tensor-scatter.js';
