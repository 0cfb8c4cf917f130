// The trained model of the page: golden outputs on every build, the roles of its heads, what switching heads off does,
// and its tokenizer.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Tokenizer } from '@huggingface/tokenizers';
import { Transformer } from 'attention-wasm/transformer';
import { builds, loadBuild } from './support/builds.js';
import { random } from './support/random.js';
import { shipped } from './support/shipped-model.js';
import { assertClose } from './support/tensors.js';

const { config, weights, golden, heads } = shipped;
const kLayers = heads.layers;
const kHeads = heads.heads;

for (const build of builds()) {
  const attention = await loadBuild(build);
  describe(`the trained model, ${build}`, async () => {
    const model = await Transformer.load(attention, { config, weights });

    for (const prompt of golden.prompts) {
      test(`golden: ${prompt.name}`, () => {
        const { ids, last_logits: last, attention: rows } = prompt;
        const T = ids.length;
        const whole = model.forward(ids, { logits: 'all', capture: { attention: true } });
        const logits = whole.logits.data.subarray((T - 1) * config.vocab_size);
        assertClose(logits, last.all, { absolute: 1e-3, what: 'logits' });
        const best = [...logits.keys()].sort((a, b) => logits[b] - logits[a]).slice(0, 10);
        assert.deepEqual(
          best,
          last.top10.map(([id]) => id),
        );
        assertClose([meanLoss(whole.logits, ids)], [prompt.mean_loss], { absolute: 1e-3, what: 'loss' });
        for (const { position, rows: layers } of rows) {
          layers.forEach((layer, l) => {
            layer.forEach((want, h) => {
              const at = (h * T + position) * T;
              const got = whole.attention[l].weights.data.subarray(at, at + position + 1);
              assertClose(got, want, { absolute: 1e-3, what: `attention of L${l}H${h} at ${position}` });
            });
          });
        }
      });

      test(`token by token: ${prompt.name}`, () => {
        const whole = model.forward(prompt.ids, { logits: 'all' }).logits;
        const cache = model.createCache({ capacity: prompt.ids.length });
        const each = prompt.ids.flatMap((id) => [...model.forward([id], { cache }).logits.data]);
        assertClose(each, whole.data, { absolute: 1e-4 });
        cache.dispose();
      });
    }
  });
}

/** Nats per token. @param {{ data: Float32Array }} logits @param {number[]} ids */
function meanLoss({ data }, ids) {
  const V = config.vocab_size;
  let sum = 0;
  for (let t = 0; t + 1 < ids.length; ++t) {
    const row = data.subarray(t * V, (t + 1) * V);
    const most = row.reduce((a, b) => Math.max(a, b));
    sum += most + Math.log(row.reduce((total, x) => total + Math.exp(x - most), 0)) - row[ids[t + 1]];
  }
  return sum / (ids.length - 1);
}

/**
 * Rows as evaluate.py makes them: the first token, filler, a run of distinct random tokens, filler, the run again.
 * `first` and `second` are where the runs begin.
 */
function repeatedRows(count) {
  const { integer } = random(1811);
  return Array.from({ length: count }, () => {
    const [before, length, between] = [integer(0, 39), integer(8, 48), integer(0, 59)];
    const tokens = new Set();
    while (tokens.size < before + length + between) tokens.add(integer(1, config.vocab_size - 1));
    const once = [0, ...tokens];
    const first = 1 + before;
    return { ids: [...once, ...once.slice(first, first + length)], first, second: once.length, length };
  });
}

describe('the heads of the trained model', async () => {
  // What the model does is the same on every build; the fastest of one thread measures it.
  const build = builds().findLast((name) => !name.endsWith('-mt'));
  const attention = await loadBuild(build);
  const model = await Transformer.load(attention, { config, weights });
  const rows = repeatedRows(60);
  const { previous, induction } = headScores(model, rows);

  test('previous token and induction: every score is as measured before', () => {
    for (let l = 0; l < kLayers; ++l) {
      for (let h = 0; h < kHeads; ++h) {
        const what = `L${l}H${h}`;
        assertClose([previous[l][h]], [heads.scores.previous_random[l][h]], { absolute: 0.03, what });
        assertClose([induction[l][h]], [heads.scores.induction_random[l][h]], { absolute: 0.05, what });
      }
    }
  });

  test('the roles on the card hold, and no other head has them', () => {
    const named = (scores, least) =>
      scores.flatMap((layer, l) => layer.flatMap((score, h) => (score >= least ? [`L${l}H${h}`] : [])));
    assert.deepEqual(named(induction, 0.5), ['L4H0', 'L4H2', 'L4H3']);
    assert.deepEqual(named(induction, 0.05), ['L4H0', 'L4H2', 'L4H3']);
    assert.deepEqual(named(previous, 0.9), ['L2H2', 'L2H3', 'L3H3']);
    const recorded = (role) =>
      heads.roles.filter(({ roles }) => roles.some((each) => each.role === role)).map((r) => `L${r.layer}H${r.head}`);
    assert.deepEqual(recorded('induction'), named(induction, 0.5));
    assert.deepEqual(recorded('previous token'), named(previous, 0.9));
  });

  for (const { off, copy_random: before } of heads.ablation.filter(isAboutCopying)) {
    test(`copying with ${off.join(', ') || 'no head'} off: ${(100 * before).toFixed(1)} %`, () => {
      model.disabledHeads = off.map((name) => name.match(/\d+/g).map(Number));
      const accuracy = copyAccuracy(model, rows);
      model.disabledHeads = [];
      // Of 1,700 tokens or so: four standard deviations of such a count, and a little for heads near none or all.
      const deviation = Math.sqrt((before * (1 - before)) / rows.reduce((sum, row) => sum + row.length - 1, 0));
      assertClose([accuracy], [before], { absolute: 4 * deviation + 0.01, what: 'accuracy' });
    });
  }
});

/** The groups, each induction head alone, and none. */
function isAboutCopying({ off }) {
  return off.length !== 1 || ['L4H0', 'L4H2', 'L4H3'].includes(off[0]);
}

/** Mean attention to the token before, and from a repeated token to the one after its first occurrence. */
function headScores(model, rows) {
  const sums = () => Array.from({ length: kLayers }, () => new Array(kHeads).fill(0));
  const [previous, induction] = [sums(), sums()];
  const counts = { previous: 0, induction: 0 };
  for (const { ids, first, second, length } of rows) {
    const T = ids.length;
    counts.previous += T - 2;
    counts.induction += length - 1;
    for (const { layer, weights: kept } of model.forward(ids, { capture: { attention: true } }).attention) {
      for (let h = 0; h < kHeads; ++h) {
        const at = (row, key) => kept.data[(h * T + row) * T + key];
        for (let i = 2; i < T; ++i) previous[layer][h] += at(i, i - 1);
        for (let k = 0; k < length - 1; ++k) induction[layer][h] += at(second + k, first + k + 1);
      }
    }
  }
  const mean = (scores, count) => scores.map((layer) => layer.map((sum) => sum / count));
  return { previous: mean(previous, counts.previous), induction: mean(induction, counts.induction) };
}

/** The share of the second run's tokens that the one before predicts. */
function copyAccuracy(model, rows) {
  const V = config.vocab_size;
  let hits = 0;
  let total = 0;
  for (const { ids, second, length } of rows) {
    const { data } = model.forward(ids, { logits: 'all' }).logits;
    for (let t = second; t < second + length - 1; ++t) {
      const row = data.subarray(t * V, (t + 1) * V);
      const most = row.reduce((a, b) => Math.max(a, b));
      if (row.indexOf(most) === ids[t + 1]) ++hits;
      ++total;
    }
  }
  return hits / total;
}

test('the tokenizer gives the ids of the golden prompts, and the text back', () => {
  const tokenizer = new Tokenizer(shipped.tokenizer, shipped.tokenizerConfig);
  for (const { text, ids, tokens } of golden.prompts) {
    const encoded = tokenizer.encode(text);
    assert.deepEqual(encoded.ids, ids);
    assert.deepEqual(encoded.tokens, tokens);
    assert.equal(tokenizer.decode(ids, { skip_special_tokens: true }), text);
  }
});
