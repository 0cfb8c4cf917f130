// Who takes part: this package in every build, and the other runtimes.
import { SetupError } from '../tools/machine.js';

/**
 * `only`: the workloads it takes part in, all by default. `eightBit`: doesn't compute in float32, and isn't compared with
 * those that do; its error has a limit of its own.
 * @typedef {{ id: string, label: string, module: string, options: object, ours?: boolean, native?: boolean, eightBit?: boolean, only?: string[] }} Contestant
 */

const ours = (simd, threads) => ({
  id: `ours-${simd}${threads > 1 ? `-${threads}t` : ''}`,
  label: `${simd}${threads > 1 ? `, ${threads} threads` : ''}`,
  module: 'attention-wasm',
  options: { simd, threads },
  ours: true,
});

/** @type {Contestant[]} */
export const contestants = [
  ours('baseline', 1),
  ours('relaxed', 1),
  ours('baseline', 2),
  ours('relaxed', 2),
  {
    ...{ id: 'ours-int8', label: 'relaxed, 8-bit', module: 'attention-wasm', ours: true, eightBit: true },
    options: { simd: 'relaxed', threads: 1, eightBit: true },
    only: ['P2', 'P4', 'D1', 'D2'], // 8-bit scores, and an 8-bit cache
  },
  { id: 'ort-web', label: 'onnxruntime-web', module: 'onnxruntime-web', options: { threads: 1 } },
  { id: 'ort-web-2t', label: 'onnxruntime-web, 2 threads', module: 'onnxruntime-web', options: { threads: 2 } },
  { id: 'jax', label: 'jax-js', module: 'jax-js', options: {} },
  { id: 'tfjs', label: 'tfjs-backend-wasm', module: 'tfjs-wasm', options: {} },
  { id: 'plain-js', label: 'plain JavaScript', module: 'plain-js', options: {} },
  {
    ...{ id: 'ort-node', label: 'onnxruntime-node (native)', module: 'onnxruntime-node', options: { threads: 1 } },
    native: true,
  },
];

/** Those whose id is named, or starts with a name and a dash. @param {string[]} names none: all */
export function chosenContestants(names) {
  const fits = (name) => contestants.filter(({ id }) => id === name || id.startsWith(`${name}-`));
  const unknown = names.find((name) => fits(name).length === 0);
  if (unknown) throw new SetupError(`--peers must name some of ${contestants.map(({ id }) => id).join(', ')}`);
  const chosen = new Set(names.flatMap(fits));
  return contestants.filter((contestant) => names.length === 0 || chosen.has(contestant));
}

/** @param {Contestant} contestant @param {string} id of a workload */
export const takesPart = ({ only }, id) => !only || only.includes(id);

/** Ours and the others by turns, so that whatever disturbs the machine disturbs both. */
export function interleaved(list) {
  const [mine, others] = [list.filter(({ ours: isOurs }) => isOurs), list.filter(({ ours: isOurs }) => !isOurs)];
  const order = [];
  for (let n = 0; n < Math.max(mine.length, others.length); ++n) {
    if (mine[n]) order.push(mine[n]);
    if (others[n]) order.push(others[n]);
  }
  return order;
}
