// A process with WebGPU in Node: Dawn, from the npm package `webgpu`. Answers the commands of page.js.
import { create, globals } from 'webgpu';
import { serve } from '../serve.js';

Object.assign(globalThis, globals);
const gpu = create(['enable-dawn-features=allow_unsafe_apis']); // for timestamps that aren't rounded
Object.defineProperty(globalThis, 'navigator', { value: { gpu }, configurable: true });
const { commands } = await import('./page.js');
serve(commands);
