// Random shapes and random sets of options against the float64 oracle. fast-check prints the seed and the smallest
// failing call; ATTENTION_WASM_SEED repeats a run, ATTENTION_WASM_RUNS multiplies their number for a long search.
import { test } from 'node:test';
import fc from 'fast-check';
import { builds, loadBuild } from './support/builds.js';
import { attention as oracle, varlenAttention as varlenOracle } from './support/oracle.js';
import { random } from './support/random.js';
import { assertClose, assertUnchanged, cast, remember, starts } from './support/tensors.js';

const kMore = Number(process.env.ATTENTION_WASM_RUNS ?? 1);
const kParameters = process.env.ATTENTION_WASM_SEED ? { seed: Number(process.env.ATTENTION_WASM_SEED) } : {};
const kRounding = { float32: 0, float16: 2 ** -11, bfloat16: 2 ** -8 };

/** Sizes that lie on both sides of lanes and tiles. */
const length = fc.oneof(
  fc.integer({ min: 0, max: 12 }),
  fc.integer({ min: 28, max: 36 }),
  fc.integer({ min: 60, max: 140 }),
);
const headSize = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 30, max: 70 }));

const sizes = fc.record({
  B: fc.integer({ min: 1, max: 3 }),
  Hkv: fc.integer({ min: 1, max: 3 }),
  G: fc.integer({ min: 1, max: 3 }),
  Tq: length,
  Tk: length,
  D: headSize,
  Dv: headSize,
  seed: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
});

/** Which options are on; their values come from the seed. Each is absent half of the time. */
const optional = (arbitrary) => fc.option(arbitrary, { nil: undefined });
const optionSet = fc.record({
  alignment: fc.constantFrom('none', 'top-left', 'bottom-right', 'offset', 'offset per item'),
  isCausal: fc.boolean(),
  window: optional(fc.tuple(fc.integer({ min: -1, max: 80 }), fc.integer({ min: -1, max: 80 }))),
  mask: optional(
    fc.record({
      additive: fc.boolean(),
      pattern: fc.integer({ min: 0, max: 15 }),
      density: fc.constantFrom(0.1, 0.5, 0.95),
    }),
  ),
  scale: optional(fc.constantFrom(0, 0.3, -0.25)),
  softcap: optional(fc.constantFrom(0.5, 2, 30)),
  alibi: optional(fc.constantFrom('published', 'own')),
  sinks: fc.boolean(),
  keyLengths: fc.boolean(),
  queryLengths: fc.boolean(),
  layout: fc.constantFrom('bhtd', 'bthd'),
  dtype: fc.constantFrom('float32', 'float32', 'float32', 'float16', 'bfloat16'),
  needWeights: fc.constantFrom(true, 'mean', 'some'),
});

function lengthsUpTo(g, count, most) {
  return Int32Array.from({ length: count }, () => g.integer(0, most));
}

/** A mask of the pattern's broadcast shape; an additive one hides, too. */
function maskOf(g, { additive, pattern, density }, full) {
  const shape = full.map((size, axis) => (pattern & (1 << axis) ? size : 1));
  const bits = g.booleans(shape, density);
  if (!additive) return bits;
  return { data: Float32Array.from(bits.data, (bit) => (bit ? g.normal() : Number.NEGATIVE_INFINITY)), shape };
}

/** The options of one valid call: ALiBi and windows need an alignment, which 'none' gives only where Tq = Tk. */
function optionsOf(g, { B, Hkv, G, Tq, Tk }, set) {
  const H = Hkv * G;
  const aligned = set.alignment !== 'none';
  const causal = { 'top-left': 'top-left', 'bottom-right': 'bottom-right' }[set.alignment] ?? (aligned && set.isCausal);
  const options = { isCausal: causal };
  if (set.alignment === 'offset') options.queryOffset = g.integer(-Tq, Tk + 5);
  if (set.alignment === 'offset per item')
    options.queryOffset = Int32Array.from({ length: B }, () => g.integer(-Tq, Tk + 5));
  if (set.window && aligned) options.windowSize = set.window;
  if (set.alibi && aligned) options.alibiSlopes = set.alibi === 'own' ? g.tensor([H], 0.2).data : true;
  if (set.mask) options.attnMask = maskOf(g, set.mask, [B, H, Tq, Tk]);
  if (set.scale !== undefined) options.scale = set.scale;
  if (set.softcap) options.softcap = set.softcap;
  if (set.sinks) options.sinks = g.tensor([H]).data;
  if (set.keyLengths) options.keyLengths = lengthsUpTo(g, B, Tk);
  if (set.queryLengths) options.queryLengths = lengthsUpTo(g, B, Tq);
  if (set.layout === 'bthd') options.layout = 'bthd';
  return options;
}

function chosenWeights(g, { Hkv, G, Tq }, choice) {
  if (choice !== 'some') return choice;
  const heads = Array.from({ length: g.integer(1, 3) }, () => g.integer(0, Hkv * G - 1));
  const rows = Tq ? Array.from({ length: g.integer(1, 3) }, () => g.integer(0, Tq - 1)) : [];
  return { heads: [...new Set(heads)], rows: [...new Set(rows)] };
}

// Each call is put to all builds, so that the oracle answers it once.
const instances = [];
for (const build of builds()) instances.push({ build, attention: await loadBuild(build) });

test('any valid call answers as the oracle', () => {
  const property = fc.property(sizes, optionSet, (s, set) => {
    const g = random(s.seed);
    const shape = (heads, tokens, size) =>
      set.layout === 'bthd' ? [s.B, tokens, heads, size] : [s.B, heads, tokens, size];
    const [q, k, v] = [
      g.tensor(shape(s.Hkv * s.G, s.Tq, s.D)),
      g.tensor(shape(s.Hkv, s.Tk, s.D)),
      g.tensor(shape(s.Hkv, s.Tk, s.Dv)),
    ].map((x) => cast(x, set.dtype));
    const options = optionsOf(g, s, set);
    const needWeights = chosenWeights(g, s, set.needWeights);
    const rounding = { absolute: 1e-5, relative: kRounding[set.dtype] };
    const inputs = remember(q, k, v);
    const want = oracle(q, k, v, { ...options, needWeights });
    for (const { build, attention } of instances) {
      const fused = attention.scaledDotProductAttention(q, k, v, { ...options, returnLse: true });
      assertClose(fused.output, want.output, { ...rounding, what: `${build}: output` });
      assertClose(fused.lse, want.lse, { relative: 1e-6, what: `${build}: lse` });
      const whole = attention.scaledDotProductAttention(q, k, v, { ...options, needWeights });
      assertClose(whole.weights, want.weights, { what: `${build}: weights` });
      assertClose(whole.output, want.output, { ...rounding, what: `${build}: output beside weights` });
      assertUnchanged(inputs);
    }
  });
  fc.assert(property, { ...kParameters, numRuns: 250 * kMore });
});

test('any packed sequences answer as the oracle', () => {
  const shapes = fc.record({
    lengths: fc.array(fc.tuple(length, length), { minLength: 0, maxLength: 4 }),
    Hkv: fc.integer({ min: 1, max: 2 }),
    G: fc.integer({ min: 1, max: 3 }),
    D: headSize,
    Dv: headSize,
    isCausal: fc.constantFrom(false, 'top-left', 'bottom-right'),
    softcap: fc.constantFrom(0, 1.5),
    sinks: fc.boolean(),
    seed: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  });
  const property = fc.property(shapes, ({ lengths, Hkv, G, D, Dv, isCausal, softcap, sinks, seed }) => {
    const g = random(seed);
    const [cuSeqlensQ, cuSeqlensK] = [0, 1].map((which) => starts(lengths.map((pair) => pair[which])));
    const q = g.tensor([cuSeqlensQ.at(-1), Hkv * G, D]);
    const k = g.tensor([cuSeqlensK.at(-1), Hkv, D]);
    const v = g.tensor([cuSeqlensK.at(-1), Hkv, Dv]);
    const options = { cuSeqlensQ, cuSeqlensK, isCausal, softcap, returnLse: true };
    if (sinks) options.sinks = g.tensor([Hkv * G]).data;
    const want = varlenOracle(q, k, v, options);
    for (const { build, attention } of instances) {
      const got = attention.varlenAttention(q, k, v, options);
      assertClose(got.output, want.output, { what: `${build}: output` });
      assertClose(got.lse, want.lse, { what: `${build}: lse` });
    }
  });
  fc.assert(property, { ...kParameters, numRuns: 80 * kMore });
});
