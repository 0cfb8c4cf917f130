// WebGPU in Firefox: another compiler of shaders, a driver with other limits, no subgroups, and float16 arithmetic, which
// no other engine has without a graphics card. npm run test:firefox; the browser and the driver must be there.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { bringPackage, kPageName, servePackage } from '../browser/package-page.js';
import { attentionCases } from '../support/cases.js';
import { configs, weightsFor } from '../support/models.js';
import { assertClose } from '../support/tensors.js';
import { pack, unpack } from './wire.js';

const kFirefox = process.env.FIREFOX ?? '/usr/bin/firefox-esr';
const kPreferences = { 'dom.webgpu.enabled': true, 'gfx.webgpu.ignore-blocklist': true };
/** Of the output's type; float16 sums weights and values that are rounded once more. */
const kTolerance = {
  float32: { absolute: 1e-4 },
  float16: { absolute: 5e-3 },
  bfloat16: { absolute: 1e-4, relative: 2 ** -8 },
};
const kAtOnce = 16;

let browser;
let server;
let page;

before(async () => {
  assert.ok(existsSync(kFirefox), `Firefox must be at ${kFirefox} (FIREFOX=… names another place)`);
  server = await servePackage();
  browser = await puppeteer.launch({
    ...{ browser: 'firefox', executablePath: kFirefox, headless: true },
    extraPrefsFirefox: kPreferences,
  });
  page = await browser.newPage();
  await page.goto(server.url + kPageName);
  await page.evaluate(bringPackage);
  await page.evaluate(`window.pack = ${pack}; window.unpack = ${unpack};`);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

function runInPage(cases) {
  const calls = cases.map(({ name, q, k, v, options }) => ({ name, q, k, v, options }));
  return page
    .evaluate(async (text) => {
      window.attention ??= await window.packageEntry.load({ backend: 'webgpu' });
      const answers = await Promise.all(
        window.unpack(text).map(async ({ name, q, k, v, options }) => {
          const { needWeights = true, ...others } = options;
          try {
            const [fused, whole] = await Promise.all([
              window.attention.scaledDotProductAttention(q, k, v, { ...others, returnLse: true }),
              window.attention.scaledDotProductAttention(q, k, v, { ...others, needWeights }),
            ]);
            return { name, fused, whole };
          } catch (error) {
            return { name, error: `${error.code}: ${error.message}` };
          }
        }),
      );
      return window.pack(answers);
    }, pack(calls))
    .then(unpack);
}

test('there is an adapter, and it computes in float16', async () => {
  const [backend, float16] = await page.evaluate(async () => {
    window.attention ??= await window.packageEntry.load({ backend: 'webgpu' });
    return [window.attention.info.backend, window.attention.capabilities().float16];
  });
  assert.deepEqual([backend, float16], ['webgpu', true]);
});

test('F-097: tiles are in float16 where tensors are, and only there', async () => {
  const counts = await page.evaluate(async () => {
    const adapter = await navigator.gpu.requestAdapter();
    const device = await adapter.requestDevice({ requiredFeatures: ['shader-f16'] });
    const create = device.createShaderModule.bind(device);
    let narrow = 0;
    device.createShaderModule = (descriptor) => {
      if (descriptor.code.includes('enable f16')) ++narrow;
      return create(descriptor);
    };
    const attention = await window.packageEntry.load({ backend: 'webgpu', device });
    const run = async (data) => {
      const x = { data, shape: [1, 1, 40, 8] };
      await attention.scaledDotProductAttention(x, x, x);
      return narrow;
    };
    const seen = [await run(new Float32Array(320)), await run(new Uint16Array(320))];
    attention.dispose();
    device.destroy();
    return seen;
  });
  assert.deepEqual(counts, [0, 1]);
});

describe('whole models in Firefox give what wasm gives', () => {
  for (const name of ['LLaMA, all biases, untied, own head size', 'Qwen3, norms of queries and keys', 'GPT-2']) {
    test(name, async () => {
      const config = configs[name];
      const text = pack({ config, weights: weightsFor(config), tokens: [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8] });
      const { webgpu, wasm } = unpack(
        await page.evaluate(async (given) => {
          window.attention ??= await window.packageEntry.load({ backend: 'webgpu' });
          window.wasm ??= await window.packageEntry.load({ threads: 1 });
          const { config: of, weights, tokens } = window.unpack(given);
          const answers = {};
          for (const backend of ['attention', 'wasm']) {
            const model = await window.Transformer.load(window[backend], { config: of, weights });
            const cache = await model.createCache({ capacity: 12 });
            const whole = await model.forward(tokens.slice(0, 11), {
              cache,
              logits: 'all',
              capture: { attention: true },
            });
            const { logits } = await model.forward(tokens.slice(11), { cache });
            answers[backend === 'wasm' ? 'wasm' : 'webgpu'] = { whole, logits };
          }
          return window.pack(answers);
        }, text),
      );
      assertClose(webgpu.whole.logits, wasm.whole.logits, { absolute: 1e-4, relative: 1e-5 });
      assertClose(webgpu.logits, wasm.logits, { absolute: 1e-4, relative: 1e-5 });
      webgpu.whole.attention.forEach(({ weights }, l) => {
        assertClose(weights, wasm.whole.attention[l].weights, { absolute: 1e-4, what: `layer ${l}` });
      });
    });
  }
});

describe('F-100: scaledDotProductAttention in Firefox gives what the oracle gives', () => {
  const answers = new Map();
  before(async () => {
    for (let n = 0; n < attentionCases.length; n += kAtOnce) {
      for (const { name, ...answer } of await runInPage(attentionCases.slice(n, n + kAtOnce)))
        answers.set(name, answer);
    }
  });
  for (const { name, outputType, ...call } of attentionCases) {
    test(name, () => {
      const { fused, whole, error } = answers.get(name);
      assert.equal(error, undefined);
      const { expected } = call;
      assertClose(fused.output, expected.output, { ...kTolerance[outputType], what: 'output' });
      assertClose(fused.lse, expected.lse, { absolute: 1e-4, relative: 1e-6, what: 'lse' });
      assertClose(whole.weights, expected.weights, { absolute: 1e-4, what: 'weights' });
      assertClose(whole.output, expected.output, { ...kTolerance[outputType], what: 'output beside weights' });
    });
  }
});
