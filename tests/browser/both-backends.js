// One call on both backends in a page of Chromium: webgpu against wasm, whose own tests hold it to the oracle.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertClose } from '../support/tensors.js';

/** What the formats of the results round. */
const kRounding = { float32: 1e-6, float16: 2 ** -10, bfloat16: 2 ** -7 };

/** Same form, shapes and types; numbers within 1e-4 and the rounding of their type. */
function assertAlike(got, want, path) {
  if (want?.data && want.shape) {
    assert.equal(got.dtype, want.dtype, path);
    assertClose(got, want, { absolute: 1e-4, relative: kRounding[want.dtype ?? 'float32'], what: path });
  } else if (want && typeof want === 'object' && !ArrayBuffer.isView(want)) {
    assert.deepEqual(Object.keys(got), Object.keys(want), path);
    for (const name of Object.keys(want)) assertAlike(got[name], want[name], `${path}.${name}`);
  } else {
    assert.deepEqual(got, want, path);
  }
}

export const close = (got, want, what) =>
  assertClose(got, want, { absolute: 1e-4, relative: kRounding[got.dtype], what: `${what} beside the oracle` });

/**
 * Makes tests of a page that useGpuPage() gave.
 * @param {{ page: import('playwright-core').Page }} used
 */
export function testsOnBoth(used) {
  /** Runs `run(attention, inputs)` in the page on both backends. @param {Function} run @param {unknown} inputs */
  function onBoth(run, inputs) {
    return used.page.evaluate(
      async ({ source, given }) => {
        window.wasm ??= await window.packageEntry.load({ threads: 1 });
        const call = new Function(`return ${source}`)();
        return { webgpu: await call(window.attention, given), wasm: await call(window.wasm, given) };
      },
      { source: String(run), given: inputs },
    );
  }

  /**
   * One test: the same call on both backends, and what the oracle says of it.
   * @param {string} name @param {unknown} inputs @param {Function} run @param {(answer: any) => void} [check]
   */
  return function onBothTest(name, inputs, run, check) {
    test(name, async () => {
      const { webgpu, wasm } = await onBoth(run, inputs);
      assertAlike(webgpu, wasm, 'beside wasm');
      check?.(webgpu);
    });
  };
}
