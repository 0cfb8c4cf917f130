// The same functions in a worker: the page goes on, and a call can be stopped.
import { load } from 'attention-wasm/worker';

const attention = await load({ threads: 1 });
const [H, T, D] = [8, 2048, 64];
const x = { data: new Float32Array(H * T * D).fill(0.1), shape: [1, H, T, D] };
const onProgress = ({ done, total }) => done % 20 || console.log(`${done} of ${total} slices`);
const { output } = await attention.scaledDotProductAttention(x, x, x, { isCausal: true, onProgress });
console.log(output.shape);

const controller = new AbortController();
const call = attention.scaledDotProductAttention(x, x, x, { signal: controller.signal, transfer: true });
setTimeout(() => controller.abort(), 10); // a button of the page, say
await call.catch(({ code }) => console.log(code)); // ABORTED
attention.dispose();
