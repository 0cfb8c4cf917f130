// attention-wasm/inline: the whole package in one file that fetches nothing. `npm run build` makes dist/inline.js of it.
export * from './index.js';
export {
  onnxAttention,
  onnxRMSNormalization,
  onnxRotaryEmbedding,
  onnxSoftmax,
  onnxTensorScatter,
} from './onnx.js';
export { readSafetensors } from './safetensors.js';
export { Transformer, TransformerCache } from './transformer.js';
