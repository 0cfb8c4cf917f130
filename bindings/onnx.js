// ONNX operators over the package's functions, for those who port a graph.
//
// Names of inputs, outputs and attributes, layouts and defaults are the operators'; the arithmetic is the package's.
// A tensor is { data, shape, dtype? } or a resident Tensor; whole numbers may be BigInt64Array, Int32Array or an array.
// On a backend whose calls return promises, so do these.
export { onnxAttention } from './onnx-attention.js';
export { onnxRMSNormalization, onnxSoftmax } from './onnx-norm.js';
export { onnxRotaryEmbedding } from './onnx-rotary-embedding.js';
export { onnxTensorScatter } from './onnx-tensor-scatter.js';

/**
 * @typedef {import('./onnx-attention.js').AttentionInputs} AttentionInputs
 * @typedef {import('./onnx-attention.js').AttentionAttributes} AttentionAttributes
 * @typedef {import('./onnx-attention.js').AttentionOutputs} AttentionOutputs
 * @typedef {import('./onnx-norm.js').RmsNormalizationInputs} RmsNormalizationInputs
 * @typedef {import('./onnx-norm.js').RmsNormalizationAttributes} RmsNormalizationAttributes
 * @typedef {import('./onnx-norm.js').SoftmaxAttributes} SoftmaxAttributes
 * @typedef {import('./onnx-rotary-embedding.js').RotaryEmbeddingInputs} RotaryEmbeddingInputs
 * @typedef {import('./onnx-rotary-embedding.js').RotaryEmbeddingAttributes} RotaryEmbeddingAttributes
 * @typedef {import('./onnx-tensor-scatter.js').TensorScatterInputs} TensorScatterInputs
 * @typedef {import('./onnx-tensor-scatter.js').TensorScatterAttributes} TensorScatterAttributes
 * @typedef {import('./onnx-tensors.js').OnnxTensor} OnnxTensor
 * @typedef {import('./onnx-tensors.js').OnnxIntegers} OnnxIntegers
 */
