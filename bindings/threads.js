// Whether this engine has threads, and for how many there are cores.
import { isNode, isValid, nodeModule } from './engine.js';

/** @returns {Promise<{ obstacle: string | null, cores: number }>} */
export async function look() {
  return hasThreads()
    ? { obstacle: null, cores: await coreCount() }
    : { obstacle: 'not supported by this engine', cores: 1 };
}

async function coreCount() {
  if (isNode()) return /** @type {typeof import('node:os')} */ (await nodeModule('os')).availableParallelism();
  return globalThis.navigator?.hardwareConcurrency ?? 1;
}

/** i32.atomic.load of a shared memory, which must also pass from one thread to another. */
function hasThreads() {
  try {
    new MessageChannel().port1.postMessage(new SharedArrayBuffer(1));
  } catch {
    return false;
  }
  const memory = [1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 5, 4, 1, 3, 1, 1];
  return isValid(...memory, 10, 11, 1, 9, 0, 0x41, 0, 0xfe, 16, 2, 0, 26, 11);
}
