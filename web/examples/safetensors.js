// A layer of a PyTorch checkpoint, in a browser or in Node. Weights are [out, in], as they stand in the file.
import { load } from 'attention-wasm';
import { readSafetensors } from 'attention-wasm/safetensors';

const url = new URL('layer.safetensors', import.meta.url);
const { readFile } = await import('node:fs/promises'); // in a page: await (await fetch(url)).arrayBuffer()
const tensors = readSafetensors(await readFile(url));

const attention = await load();
const layer = attention.multiHeadAttention({ dModel: 16, numHeads: 4, numKvHeads: 2, rope: { style: 'half' } });
layer.loadStateDict(tensors);
const { output } = layer.forward({ data: new Float32Array(3 * 16).fill(0.5), shape: [1, 3, 16] });
console.log(Object.keys(tensors), output.shape);
attention.dispose();
