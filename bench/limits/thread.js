// One thread of limits/worker.js.
import { parentPort, workerData } from 'node:worker_threads';
import { loops } from './loops.js';

const all = loops(workerData.bytes);
parentPort.on('message', ({ name, ms }) => parentPort.postMessage(all[name](ms)));
