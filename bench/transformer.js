// npm run bench:transformer: tokens a second of whole models, reading (prefill) and writing (decode), beside
// onnxruntime-web with the same weights as an ONNX graph.
//
//   --only shipped,gpt2-small   one of the models
//   --peers ours,ort-web        some of the contestants
//   --quick                     few samples, for a look
//
// Prefill reads kTokens tokens at once; decode reads one after kTokens that are cached. Both give the logits of the last
// token, which must agree with those of every other contestant, and all that the next step needs: the caches of ours
// stay in its memory, onnxruntime-web takes and gives keys and values on every call.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { fromHalf } from '../bindings/half.js';
import { readSafetensors } from '../dist/safetensors.js';
import { main, say } from '../tools/machine.js';
import { choose, readOptions } from './command-line.js';
import { minimumAndMedian } from './contest.js';
import { chosenContestants, interleaved } from './contestants.js';
import { onnxModel } from './onnx/model.js';
import { Process } from './process.js';
import { serve } from './serve.js';
import { machine, setUp } from './setup.js';
import { randomValues } from './workloads.js';

const kTokens = 256;
const kPhases = ['prefill', 'decode'];
/** Of the largest logit. */
const kTolerance = 1e-3;
const kMicrosoft = 'com.microsoft';

/** @typedef {{ config: Record<string, any>, weights: Record<string, { data: Float32Array, shape: number[] }> }} Model */

/** @type {Record<string, { title: string, make: () => Model }>} */
const models = {
  shipped: { title: 'the shipped model (1.2 M parameters, 5 layers, width 128)', make: shippedModel },
  'gpt2-small': { title: 'the size of GPT-2 small (124 M parameters, 12 layers, width 768)', make: gpt2Small },
};

/** @returns {Model} */
function shippedModel() {
  const read = (name) => readFileSync(new URL(`../web/model/${name}`, import.meta.url));
  const weights = Object.entries(readSafetensors(read('model.safetensors'))).map(([name, { data, shape, dtype }]) => [
    name,
    { data: Float32Array.from(data, (bits) => fromHalf(bits, dtype)), shape },
  ]);
  return { config: JSON.parse(read('config.json').toString()), weights: Object.fromEntries(weights) };
}

/** @returns {Model} */
function gpt2Small() {
  const [V, E, L, P] = [50257, 768, 12, 1024];
  const config = { model_type: 'gpt2', vocab_size: V, n_embd: E, n_layer: L, n_head: 12, n_positions: P };
  let seed = 1;
  const tensor = (deviation, ...shape) => ({
    data: randomValues(
      shape.reduce((a, b) => a * b),
      seed++,
      deviation,
    ),
    shape,
  });
  const norm = () => ({ weight: { data: new Float32Array(E).fill(1), shape: [E] }, bias: tensor(0.02, E) });
  const linear = (K, N) => ({ weight: tensor(0.7 / Math.sqrt(K), K, N), bias: tensor(0.02, N) });
  const weights = { 'wte.weight': tensor(0.5, V, E), 'wpe.weight': tensor(0.1, P, E) };
  const put = (name, { weight, bias }) =>
    Object.assign(weights, { [`${name}.weight`]: weight, [`${name}.bias`]: bias });
  for (let l = 0; l < L; ++l) {
    put(`h.${l}.ln_1`, norm());
    put(`h.${l}.attn.c_attn`, linear(E, 3 * E));
    put(`h.${l}.attn.c_proj`, linear(E, E));
    put(`h.${l}.ln_2`, norm());
    put(`h.${l}.mlp.c_fc`, linear(E, 4 * E));
    put(`h.${l}.mlp.c_proj`, linear(4 * E, E));
  }
  put('ln_f', norm());
  return { config, weights };
}

/** Tokens 0 to kTokens: the last one is read in decode. @param {Model} model */
const textOf = ({ config }) => Int32Array.from({ length: kTokens + 1 }, (_, t) => (t * 977) % config.vocab_size);

// ---- Contestants: each makes `run`, which returns the logits of the last token.

/** @param {Model} model @param {string} phase */
async function ours({ config, weights }, text, phase, options) {
  const { load } = await import('../dist/index.js');
  const { Transformer } = await import('../dist/transformer.js');
  const model = await Transformer.load(await load(options), { config, weights });
  const cache = model.createCache({ capacity: kTokens + 1 });
  const before = phase === 'decode' ? kTokens : 0;
  if (before > 0) model.forward(text.subarray(0, before), { cache });
  const tokens = phase === 'decode' ? text.subarray(kTokens) : text.subarray(0, kTokens);
  return () => {
    const { logits } = model.forward(tokens, { cache });
    cache.truncate(before);
    return logits.data;
  };
}

/** @param {Model} model @param {string} phase */
async function onnxruntime(model, text, phase, { threads }) {
  const ort = await import('onnxruntime-web');
  ort.env.wasm.numThreads = threads;
  const open = (past, count) =>
    ort.InferenceSession.create(graph(model, past, count), { executionProviders: ['wasm'], logSeverityLevel: 3 });
  const feedsOf = (tokens) => ({
    ids: new ort.Tensor('int64', BigInt64Array.from(tokens, BigInt), [1, tokens.length]),
  });
  const prompt = text.subarray(0, kTokens);
  let session = await open(0, kTokens);
  let feeds = feedsOf(prompt);
  if (phase === 'decode') {
    const read = await session.run(feeds);
    await session.release();
    session = await open(kTokens, 1);
    feeds = feedsOf(text.subarray(kTokens));
    for (const [name, kept] of Object.entries(read)) if (name !== 'logits') feeds[`past.${name}`] = kept;
  }
  return async () => (await session.run(feeds)).logits.data;
}

/** The model that reads `count` tokens after `past`. @param {Model} model @param {number} past @param {number} count */
function graph({ config, weights }, past, count) {
  const nodes = [];
  const constants = {};
  const node = (op, inputs, attributes = {}, { domain = '', outputs = 1 } = {}) => {
    const names = Array.from({ length: outputs }, (_, n) => `t${nodes.length}.${n}`);
    nodes.push({ op, domain, inputs, outputs: names, attributes });
    return outputs === 1 ? names[0] : names;
  };
  const constant = (name, data, dims, type = 'float32') => {
    constants[name] = { data, dims, type };
    return name;
  };
  const family = config.model_type === 'gpt2' ? gpt2Graph : llamaGraph;
  const tools = { config, weights, past, count, node, constant };
  const { x, head, heads, kvHeads, layers, D, norm, attend, mlp } = family(tools);
  const cached = (length) => ({ dims: [1, kvHeads, length, D] });
  const inputs = { ids: { type: 'int64', dims: [1, count] } };
  // Constants, so that the runtime can tell the sizes of the caches.
  const lengths = constant('lengths', Int32Array.of(past + count - 1), [1], 'int32');
  const total = constant('total', Int32Array.of(past + count), [1], 'int32');
  const outputs = { logits: { dims: [1, config.vocab_size] } };
  let state = x;
  for (let l = 0; l < layers; ++l) {
    const { q, k, v, more, attributes, project } = attend(l, norm(state, l, 0));
    const names = past > 0 ? [`past.k${l}`, `past.v${l}`] : ['', ''];
    if (past > 0) for (const name of names) inputs[name] = cached(past);
    const [mixed] = node(
      'GroupQueryAttention',
      [q, k, v, ...names, lengths, total, ...more],
      { num_heads: heads, kv_num_heads: kvHeads, ...attributes },
      { domain: kMicrosoft, outputs: 3 },
    );
    nodes.at(-1).outputs.splice(1, 2, `k${l}`, `v${l}`);
    for (const name of [`k${l}`, `v${l}`]) outputs[name] = cached(past + count);
    state = node('Add', [state, project(mixed)]);
    state = node('Add', [state, mlp(l, norm(state, l, 1))]);
  }
  const last = node('Gather', [state, constant('last', BigInt64Array.of(BigInt(count - 1)), [], 'int64')], { axis: 1 });
  node('Gemm', [norm(last, layers, 0), head], { transB: 1 });
  nodes.at(-1).outputs = ['logits'];
  return onnxModel({ inputs, outputs, constants, nodes });
}

function llamaGraph({ config, weights, past, count, node, constant }) {
  const { num_attention_heads: heads, num_key_value_heads: kvHeads, head_dim: D, num_hidden_layers: layers } = config;
  const weight = (name) => constant(name, weights[name].data, weights[name].shape);
  const linear = (name, x) => {
    const { data, shape } = weights[`${name}.weight`];
    return node('MatMul', [x, constant(name, transposed(data, ...shape), [shape[1], shape[0]])]);
  };
  const angles = (turn) =>
    Float32Array.from({ length: ((past + count) * D) / 2 }, (_, n) =>
      turn(Math.floor(n / (D / 2)) * config.rope_theta ** ((-2 * (n % (D / 2))) / D)),
    );
  const tables = ['cos', 'sin'].map((name) => constant(name, angles(Math[name]), [past + count, D / 2]));
  const norms = (l, n) => `model.layers.${l}.${n === 0 ? 'input' : 'post_attention'}_layernorm.weight`;
  return {
    ...{ heads, kvHeads, layers, D, head: 'model.embed_tokens.weight' },
    x: node('Gather', [weight('model.embed_tokens.weight'), 'ids']),
    norm: (x, l, n) =>
      node('SimplifiedLayerNormalization', [x, weight(l === layers ? 'model.norm.weight' : norms(l, n))], {
        ...{ axis: -1, epsilon: { float: config.rms_norm_eps } },
      }),
    attend(l, x) {
      const [q, k, v] = ['q', 'k', 'v'].map((name) => linear(`model.layers.${l}.self_attn.${name}_proj`, x));
      const project = (mixed) => linear(`model.layers.${l}.self_attn.o_proj`, mixed);
      return { q, k, v, more: tables, attributes: { do_rotary: 1 }, project };
    },
    mlp(l, x) {
      const [gate, up] = ['gate', 'up'].map((name) => linear(`model.layers.${l}.mlp.${name}_proj`, x));
      const active = node('QuickGelu', [gate], { alpha: { float: 1 } }, { domain: kMicrosoft });
      return linear(`model.layers.${l}.mlp.down_proj`, node('Mul', [active, up]));
    },
  };
}

function gpt2Graph({ config, weights, past, count, node, constant }) {
  const { n_embd: E, n_head: heads, n_layer: layers } = config;
  const weight = (name) => constant(name, weights[name].data, weights[name].shape);
  const linear = (name, x) => node('Add', [node('MatMul', [x, weight(`${name}.weight`)]), weight(`${name}.bias`)]);
  const positions = weights['wpe.weight'].data.subarray(past * E, (past + count) * E);
  const tokens = node('Gather', [weight('wte.weight'), 'ids']);
  const sizes = constant('sizes', BigInt64Array.of(BigInt(E), BigInt(E), BigInt(E)), [3], 'int64');
  return {
    ...{ heads, kvHeads: heads, layers, D: E / heads, head: 'wte.weight' },
    x: node('Add', [tokens, constant('positions', positions, [1, count, E])]),
    norm(x, l, n) {
      const name = l === layers ? 'ln_f' : `h.${l}.ln_${n + 1}`;
      const parts = [x, weight(`${name}.weight`), weight(`${name}.bias`)];
      return node('LayerNormalization', parts, { axis: -1, epsilon: { float: 1e-5 } });
    },
    attend(l, x) {
      const packed = linear(`h.${l}.attn.c_attn`, x);
      const [q, k, v] = node('Split', [packed, sizes], { axis: -1 }, { outputs: 3 });
      return { q, k, v, more: [], attributes: {}, project: (mixed) => linear(`h.${l}.attn.c_proj`, mixed) };
    },
    mlp(l, x) {
      const active = node('FastGelu', [linear(`h.${l}.mlp.c_fc`, x)], {}, { domain: kMicrosoft });
      return linear(`h.${l}.mlp.c_proj`, active);
    },
  };
}

function transposed(values, rows, columns) {
  const result = new Float32Array(values.length);
  for (let r = 0; r < rows; ++r) for (let c = 0; c < columns; ++c) result[c * rows + r] = values[r * columns + c];
  return result;
}

// ---- A contestant's process.

let run;

const commands = {
  async open({ name, phase, module, options }) {
    const model = models[name].make();
    run = await (module === 'attention-wasm' ? ours : onnxruntime)(model, textOf(model), phase, options);
    return Float32Array.from(await run());
  },

  /** Milliseconds of each call, for `ms`. */
  async measure({ ms }) {
    const times = [];
    const end = performance.now() + ms;
    do {
      const start = performance.now();
      await run();
      times.push(performance.now() - start);
    } while (performance.now() < end);
    return times;
  },
};

// ---- The command.

async function contest(name, phase, contestants, { rounds, ms }) {
  const entries = [];
  try {
    for (const contestant of interleaved(contestants)) {
      say(`${name}, ${phase}: preparing ${contestant.id}`);
      const process = new Process(new URL(import.meta.url));
      const entry = { contestant, process, times: [] };
      entries.push(entry);
      entry.logits = await process.ask('open', { name, phase, ...contestant });
      await process.ask('measure', { ms });
    }
    for (let round = 0; round < rounds; ++round) {
      for (const { process, times } of entries) times.push(...(await process.ask('measure', { ms })));
    }
  } finally {
    for (const { process } of entries) await process.close();
  }
  return entries.map(({ contestant, times, logits }) => ({
    ...{ id: contestant.id, ...minimumAndMedian(times) },
    difference: differenceOf(logits, entries[0].logits),
  }));
}

/** Of the largest logit. */
function differenceOf(logits, reference) {
  const most = reference.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  return logits.reduce((worst, value, i) => Math.max(worst, Math.abs(value - reference[i])), 0) / most;
}

const digits = (rate) => (rate < 100 ? rate.toPrecision(3) : rate.toFixed(0));

function report(title, results) {
  const rows = [
    `\n${title}\n`,
    '| | | tokens a second | median | difference of logits |',
    '| --- | --- | ---: | ---: | ---: |',
  ];
  for (const [phase, entries] of Object.entries(results)) {
    const count = phase === 'prefill' ? kTokens : 1;
    for (const { id, minimum, median, difference } of entries) {
      const [best, middle] = [minimum, median].map((time) => digits((1000 * count) / time));
      const isRight = difference <= kTolerance;
      rows.push(
        `| ${phase} | ${id} | ${isRight ? best : 'wrong'} | ${isRight ? middle : ''} | ${difference.toExponential(1)} |`,
      );
    }
  }
  console.log(rows.join('\n'));
}

if (process.send) {
  serve(commands);
} else if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const { only, peers, quick = false } = readOptions(['only', 'peers'], ['quick']);
    const able = ['attention-wasm', 'onnxruntime-web'];
    const chosen = chosenContestants(peers?.split(',') ?? []).filter(
      ({ module, only: some }) => able.includes(module) && !some,
    );
    await setUp({ peers: true });
    const { processor, cores, node, load } = machine();
    console.log(`${processor}, ${cores} cores, Node ${node}; load ${load.toFixed(1)} at the start.`);
    for (const name of choose('only', only, Object.keys(models))) {
      const results = {};
      for (const phase of kPhases) {
        results[phase] = await contest(name, phase, chosen, quick ? { rounds: 2, ms: 500 } : { rounds: 6, ms: 2000 });
      }
      report(models[name].title, results);
    }
  });
}
