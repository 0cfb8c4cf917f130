// npm run bench:blocks: RoPE, the whole layer, and the key/value cache in each of its types: storing and decoding.
//
//   --builds relaxed     some of baseline, relaxed
//   --node 24            under npm's Node 24
//
// Every line runs by turns with the others of its part. A cache's answer is compared with the float32 one first; its
// distance from float64 is the business of the tests.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { main, SetupError, say } from '../tools/machine.js';
import { choose, isRunElsewhere, readOptions } from './command-line.js';
import { minimumAndMedian } from './contest.js';
import { kRelaxedFlags } from './node-flags.js';
import { machine, setUp } from './setup.js';
import { randomValues } from './workloads.js';

const kRounds = 5;
const kMs = 120;

/** Types of a cache, and how far their answers may be from float32's, relative to the largest value. */
const kTypes = { float32: 1e-6, float16: 2e-3, bfloat16: 1e-2, int8: 4e-2, q8_0: 4e-2, q4_0: 5e-1 };

const tensor = (attention, seed, shape) =>
  attention.tensor(
    randomValues(
      shape.reduce((a, b) => a * b),
      seed,
    ),
    shape,
  );

/** @typedef {{ name: string, run: () => void, bytes?: number, flops?: number }} Line */

/** @returns {Line[]} */
function rope(attention) {
  const [H, T, D] = [32, 1024, 128];
  const x = tensor(attention, 1, [1, H, T, D]);
  const out = attention.tensor(null, x.shape);
  return ['half', 'interleaved'].map((style) => {
    const options = { style, out };
    return {
      name: `RoPE, ${style}, H=${H} T=${T} D=${D}`,
      run: () => attention.rope(x, options),
      bytes: 2 * x.data.byteLength,
    };
  });
}

/** @returns {Line[]} */
function layers(attention) {
  const [E, H, T] = [768, 12, 512];
  const weights = Object.fromEntries(
    ['q_proj', 'k_proj', 'v_proj', 'out_proj'].map((name, i) => [
      `${name}.weight`,
      { data: randomValues(E * E, 10 + i, 1 / Math.sqrt(E)), shape: [E, E] },
    ]),
  );
  const layer = (options) => {
    const mha = attention.multiHeadAttention({ dModel: E, numHeads: H, isCausal: true, ...options });
    mha.loadStateDict(weights);
    return mha;
  };
  const x = tensor(attention, 20, [1, T, E]);
  const out = attention.tensor(null, [1, T, E]);
  const flops = 8 * T * E * E + 2 * T * T * E;
  const plain = layer({});
  const turned = layer({ rope: { style: 'half' } });
  const cached = layer({ rope: { style: 'half' } });
  const cache = attention.keyValueCache({ numKvHeads: H, headDim: E / H, capacity: T + 1 });
  cached.forward(x, { cache, out });
  const token = tensor(attention, 21, [1, 1, E]);
  const next = attention.tensor(null, [1, 1, E]);
  return [
    { name: `layer, causal, T=${T} E=${E} H=${H}`, run: () => plain.forward(x, { out }), flops },
    { name: 'the same with RoPE', run: () => turned.forward(x, { out }), flops },
    {
      name: `one token after ${T} in its cache`,
      run() {
        cached.forward(token, { cache, out: next });
        cache.truncate(T);
      },
      bytes: 4 * (4 * E * E + 2 * T * E),
    },
  ];
}

/** @returns {Line[]} */
function stores(attention) {
  const [H, T, D] = [8, 1024, 128];
  const k = tensor(attention, 30, [1, H, T, D]);
  const v = tensor(attention, 31, [1, H, T, D]);
  const k1 = tensor(attention, 32, [1, H, 1, D]);
  const v1 = tensor(attention, 33, [1, H, 1, D]);
  return Object.keys(kTypes).flatMap((dtype) => {
    const cache = attention.keyValueCache({ numKvHeads: H, headDim: D, capacity: T, dtype });
    const store = (key, value) => () => {
      cache.clear();
      cache.append(key, value);
    };
    return [
      { name: `append ${T} tokens, ${dtype}, H=${H} D=${D}`, run: store(k, v), bytes: 2 * k.data.byteLength },
      { name: `append 1 token, ${dtype}`, run: store(k1, v1), bytes: 2 * k1.data.byteLength },
    ];
  });
}

/** @returns {Line[]} */
function decodes(attention) {
  const sizes = { D1: { H: 32, Hkv: 8, Tk: 4096, D: 128 }, D2: { H: 8, Hkv: 8, Tk: 16384, D: 128 } };
  return Object.entries(sizes).flatMap(([id, { H, Hkv, Tk, D }]) => {
    const [k, v] = [40, 41].map((seed) => ({ data: randomValues(Hkv * Tk * D, seed), shape: [1, Hkv, Tk, D] }));
    const q = tensor(attention, 42, [1, H, 1, D]);
    let exact;
    return Object.entries(kTypes).map(([dtype, most]) => {
      const cache = attention.keyValueCache({ numKvHeads: Hkv, headDim: D, capacity: Tk, dtype });
      cache.append(k, v);
      const out = attention.tensor(null, [1, H, 1, D]);
      const run = () => cache.attend(q, { out });
      run();
      exact ??= out.data.slice();
      check(`${id} ${dtype}`, exact, out.data, most);
      return { name: `decode ${id}, ${dtype}, Tk=${Tk} H=${H} Hkv=${Hkv} D=${D}`, run, flops: 4 * H * Tk * D };
    });
  });
}

function check(name, exact, got, most) {
  const largest = exact.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  const error = got.reduce((worst, value, i) => Math.max(worst, Math.abs(value - exact[i])), 0) / largest;
  if (!(error <= most)) throw new Error(`${name} is ${error} from float32, more than ${most}`);
}

/** Lines by turns. @param {Line[]} lines */
function measure(lines) {
  const times = lines.map(() => []);
  for (let round = 0; round <= kRounds; ++round) {
    lines.forEach(({ run }, i) => {
      const end = performance.now() + kMs;
      do {
        const start = performance.now();
        run();
        if (round > 0) times[i].push(performance.now() - start); // the first round warms up
      } while (performance.now() < end);
    });
  }
  return times.map(minimumAndMedian);
}

async function report(simd) {
  const { load } = await import('../dist/index.js');
  for (const part of [rope, layers, stores, decodes]) {
    const attention = await load({ simd, threads: 1 });
    const lines = part(attention);
    measure(lines).forEach(({ minimum, median }, i) => {
      const { name, bytes, flops } = lines[i];
      const rate = flops
        ? `${(flops / minimum / 1e6).toFixed(1)} GFLOP/s`
        : `${(bytes / minimum / 1e6).toFixed(1)} GB/s`;
      console.log(`| ${simd} | ${name} | ${minimum.toPrecision(3)} | ${median.toPrecision(3)} | ${rate} |`);
    });
    attention.dispose();
  }
}

if (process.env.BENCH_BLOCKS_BUILD) {
  await report(process.env.BENCH_BLOCKS_BUILD);
} else {
  await main(async () => {
    const options = readOptions(['builds', 'node']);
    const builds = choose('builds', options.builds, ['baseline', 'relaxed']);
    if (isRunElsewhere(options.node)) return;
    await setUp({ peers: false });
    const { processor, node, load } = machine();
    say(`${processor}, Node ${node}, one thread; load ${load.toFixed(1)} at the start`);
    console.log('| build | what | ms | median | rate |\n| --- | --- | ---: | ---: | ---: |');
    for (const simd of builds) {
      const flags = simd === 'relaxed' ? kRelaxedFlags : [];
      const env = { ...process.env, BENCH_BLOCKS_BUILD: simd };
      const { status } = spawnSync(process.execPath, [...flags, fileURLToPath(import.meta.url)], {
        stdio: 'inherit',
        env,
      });
      if (status !== 0) throw new SetupError(`the ${simd} build failed`);
    }
  });
}
