// What PyTorch gave for the module of the code pane, in float64, with the parameters and the input that it was given.
import stored from './reference.json' with { type: 'json' };

/** @import { Tensor } from '../../types.js' */

/** @param {{ shape: number[], base64: string }} tensor @returns {Tensor} */
function decoded({ shape, base64 }) {
  const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
  return { data: new Float32Array(bytes.buffer), shape };
}

/** @type {{ parameters: Record<string, Tensor>, x: Tensor, output: Tensor, weights: Tensor, heads: number }} */
export const reference = {
  parameters: Object.fromEntries(Object.entries(stored.state_dict).map(([name, tensor]) => [name, decoded(tensor)])),
  x: decoded(stored.x),
  output: decoded(stored.output),
  weights: decoded(stored.attention_weights),
  heads: stored.n_heads,
};
