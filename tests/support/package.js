// The package as its users have it; from its sources for tests that look inside (sources.js).
import { which } from './which-package.js';

export const { AttentionError, errorCodes, load, ropeFrequencies } = which.sources
  ? await import('../../bindings/index.js')
  : await import('attention-wasm');
export const { Transformer } = which.sources
  ? await import('../../bindings/transformer.js')
  : await import('attention-wasm/transformer');
