// RoPE for multimodal models: position streams (time, height, width, …) by sections of pairs. And what is kept between
// calls: the same tables, whatever came before.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { rope as oracle, ropeFrequencies } from './support/oracle-rope.js';
import { random } from './support/random.js';
import { assertClose, assertSameBits, slice } from './support/tensors.js';

/** The stream of each pair, from the definitions. */
function streamOf(pair, section, interleaved) {
  if (interleaved) {
    if (pair % 3 === 1 && pair < 3 * section[1]) return 1;
    return pair % 3 === 2 && pair < 3 * section[2] ? 2 : 0;
  }
  let end = 0;
  return section.findIndex((size) => {
    end += size;
    return pair < end;
  });
}

/** x [B, H, T, D], positions [streams][B][T]: each pair turned as by rope with the positions of its stream. */
function sectioned(x, positions, section, { interleaved = false, rotaryDim: d = x.shape[3], ...options }) {
  const [B, H, T, D] = x.shape;
  const output = { data: Float64Array.from(x.data), shape: x.shape };
  const turned = positions.map((rows) =>
    oracle(x, { ...options, rotaryDim: d, positions: { data: rows, shape: [B, T] } }),
  );
  for (let pair = 0; pair < d / 2; ++pair) {
    const channels = options.style === 'half' ? [pair, pair + d / 2] : [2 * pair, 2 * pair + 1];
    const from = turned[streamOf(pair, section, interleaved)];
    for (let row = 0; row < B * H * T; ++row)
      for (const c of channels) output.data[row * D + c] = from.data[row * D + c];
  }
  return output;
}

const [B, H, T] = [2, 3, 5];
const longrope = {
  ...{ rope_type: 'longrope', original_max_position_embeddings: 16, max_position_embeddings: 64 },
  short_factor: Array.from({ length: 8 }, (_, i) => 1 + i / 8),
  long_factor: Array.from({ length: 8 }, (_, i) => 2 + i),
};
const dynamic = { rope_type: 'dynamic', factor: 2, original_max_position_embeddings: 16 };

for (const build of builds()) {
  const attention = await loadBuild(build);

  describe(`sections of positions, ${build}`, () => {
    const cases = {
      'three sections': { section: [4, 3, 5], D: 24 },
      'four sections': { section: [2, 3, 4, 3], D: 24 },
      'a section of no pairs': { section: [6, 0, 6], D: 24 },
      'part of the width': { section: [2, 1, 1], D: 24, rotaryDim: 8 },
      'interleaved sections': { section: [4, 4, 4], D: 24, interleaved: true },
      'interleaved sections of different sizes': { section: [6, 3, 3], D: 24, interleaved: true },
    };
    for (const [name, { section, D, rotaryDim, interleaved }] of Object.entries(cases)) {
      test(name, () => {
        const g = random(24);
        const x = g.tensor([B, H, T, D]);
        const streams = section.length;
        const data = Int32Array.from({ length: streams * B * T }, () => g.integer(0, 900));
        const rows = (s) => data.subarray(s * B * T, (s + 1) * B * T);
        const all = Array.from({ length: streams }, (_, s) => rows(s));
        for (const style of ['half', 'interleaved']) {
          const sections = { mropeSection: section, ...(interleaved && { mropeInterleaved: true }) };
          const options = { style, base: 777, rotaryDim };
          const want = sectioned(x, all, section, { ...options, interleaved });
          const positions = { data, shape: [streams, B, T] };
          assertClose(attention.rope(x, { ...options, ...sections, positions }), want, { absolute: 2e-6 });
          // The names of config.json, where they stand among the scaling.
          const scaling = { type: 'mrope', mrope_section: section, ...(interleaved && { mrope_interleaved: true }) };
          assertClose(attention.rope(x, { ...options, scaling, positions }), want, { absolute: 2e-6 });
          // One list for all items; and one position for all streams, which is plain RoPE.
          const shared = {
            data: Int32Array.from(all.flatMap((list) => [...list.subarray(0, T)])),
            shape: [streams, T],
          };
          const one = all.map((list) => Int32Array.from([...list.subarray(0, T), ...list.subarray(0, T)]));
          const got = attention.rope(x, { ...options, ...sections, positions: shared });
          assertClose(got, sectioned(x, one, section, { ...options, interleaved }), { absolute: 2e-6 });
          const text = Int32Array.of(9, 8, 7, 6, 5);
          const plain = attention.rope(x, { ...options, positions: text });
          assertSameBits(attention.rope(x, { ...options, ...sections, positions: text }), plain);
          assertSameBits(
            attention.rope(x, { ...options, ...sections, offset: 3 }),
            attention.rope(x, { ...options, offset: 3 }),
          );
        }
      });
    }

    test('a layer turns by the sections of its configuration', () => {
      const g = random(25);
      const [dModel, headDim] = [12, 12];
      const weights = ['q', 'k', 'v', 'out'].map((name) => [`${name}_proj.weight`, g.tensor([dModel, dModel], 0.3)]);
      const x = g.tensor([1, T, dModel]);
      const config = { dModel, numHeads: 1, isCausal: true };
      const positions = { data: Int32Array.from({ length: 3 * T }, (_, n) => (n * 5) % 13), shape: [3, T] };
      const mha = attention.multiHeadAttention({ ...config, rope: { style: 'half', mropeSection: [2, 2, 2] } });
      mha.loadStateDict(Object.fromEntries(weights));
      const [q, k, v] = weights.map(([, weight]) => {
        const { data } = attention.linear(x, weight);
        return { data, shape: [1, 1, T, headDim] };
      });
      const streams = [0, 1, 2].map((s) => positions.data.subarray(s * T, (s + 1) * T));
      const turn = (heads) => {
        const { data, shape } = sectioned(heads, streams, [2, 2, 2], { style: 'half' });
        return { data: Float32Array.from(data), shape };
      };
      const { output } = attention.scaledDotProductAttention(turn(q), turn(k), v, { isCausal: true });
      const want = attention.linear({ data: output.data, shape: [1, T, dModel] }, weights[3][1]);
      assertClose(mha.forward(x, { positions }).output, want);
      mha.dispose();
    });
  });

  describe(`kept tables, ${build}`, () => {
    test('the same, whatever was asked for before', () => {
      const x = random(26).tensor([1, 2, 40, 16]);
      const row = (t, options) => attention.rope(slice(x, 2, t, t + 1), { style: 'half', offset: t, ...options });
      for (const scaling of [undefined, { rope_type: 'linear', factor: 3 }, longrope, dynamic]) {
        for (const lengths of [[40], [1, 39], new Array(40).fill(1), [20, 5, 15]]) {
          let at = 0;
          for (const length of lengths) {
            const part = slice(x, 2, at, at + length);
            const got = attention.rope(part, { style: 'half', scaling, offset: at });
            assertClose(got, oracle(part, { style: 'half', scaling, offset: at, sequenceLength: at + length }), {
              absolute: 2e-6,
            });
            at += length;
          }
          const far = row(39, { scaling, offset: 1_000_000 });
          assertClose(
            far,
            oracle(slice(x, 2, 39, 40), { style: 'half', scaling, offset: 1e6, sequenceLength: 1e6 + 1 }),
            { absolute: 1e-5 },
          );
        }
      }
    });

    test('a length that is held fixed', () => {
      const x = random(27).tensor([1, 1, 20, 16]);
      for (const scaling of [longrope, dynamic]) {
        for (const sequenceLength of [10, 16, 17, 48, 17, 10]) {
          const options = { style: 'interleaved', scaling, sequenceLength };
          assertClose(attention.rope(x, options), oracle(x, options), { absolute: 2e-6, what: `${sequenceLength}` });
          const { cos, sin } = attention.ropeTables({ rotaryDim: 16, length: 20, scaling, sequenceLength });
          const { frequencies, attentionFactor: a } = ropeFrequencies({ rotaryDim: 16, scaling, sequenceLength });
          for (let n = 0; n < 160; ++n) {
            const angle = Math.floor(n / 8) * frequencies[n % 8];
            assert.ok(Math.abs(cos.data[n] - a * Math.cos(angle)) < 1e-6);
            assert.ok(Math.abs(sin.data[n] - a * Math.sin(angle)) < 1e-6);
          }
        }
      }
    });

    test('what a caller does to tables changes no later call', () => {
      const x = random(28).tensor([1, 1, 4, 8]);
      const before = attention.rope(x, { style: 'half' });
      const { cos, sin } = attention.ropeTables({ rotaryDim: 8, length: 4 });
      cos.data.fill(7);
      sin.data.fill(7);
      assertSameBits(attention.rope(x, { style: 'half' }), before);
    });
  });
}
