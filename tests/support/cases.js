// The one table of attention calls that every build and backend has to answer as the oracle does.
// Sizes go by edge: 0, 1, lanes of 4 and 8 ± 1, tiles of 32 and 64 ± 1, primes; dimensions differ from each other.
import { attentionCase } from './attention-case.js';

const kLaneAndTileEdges = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 97, 127, 128, 129];
export const kHeadSizes = [
  ...[1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 33, 63, 64, 65, 72, 80, 88, 96, 100, 127, 128, 129],
  ...[192, 256, 257, 320, 512],
];

function sizeCases() {
  const cases = [];
  for (const Tk of kLaneAndTileEdges) cases.push(attentionCase(`Tk = ${Tk}`, { Tk, D: 12, Dv: 10 }));
  for (const Tq of kLaneAndTileEdges) cases.push(attentionCase(`Tq = ${Tq}`, { Tq, Tk: 37, D: 6, Dv: 11 }));
  for (const T of kLaneAndTileEdges) {
    cases.push(
      attentionCase(`causal, T = ${T}`, { Tq: T, Tk: T, B: 1, H: 2, Hkv: 1, D: 5, Dv: 4 }, { isCausal: true }),
    );
  }
  for (const [Tq, Tk] of [
    [1, 300],
    [2, 131],
    [3, 64],
    [4, 65],
    [7, 63],
    [8, 200],
    [9, 129],
    [33, 31],
    [70, 64],
    [13, 1],
  ]) {
    for (const isCausal of ['top-left', 'bottom-right']) {
      cases.push(attentionCase(`${isCausal}, Tq = ${Tq}, Tk = ${Tk}`, { Tq, Tk }, { isCausal }));
    }
  }
  for (const D of kHeadSizes) {
    cases.push(attentionCase(`D = Dv = ${D}`, { D, Dv: D, B: 1, H: 2, Hkv: 2, Tq: 6, Tk: 11 }));
    cases.push(
      attentionCase(
        `D = Dv = ${D}, causal prefill`,
        { D, Dv: D, B: 1, H: 1, Hkv: 1, Tq: 37, Tk: 37 },
        { isCausal: true },
      ),
    );
    cases.push(attentionCase(`D = ${D}, Dv = 6, one row`, { D, Dv: 6, Tq: 1, Tk: 67 }));
    cases.push(attentionCase(`Dv = ${D}, D = 6`, { D: 6, Dv: D, Tq: 10, Tk: 13 }));
  }
  for (const empty of [{ B: 0 }, { H: 0, Hkv: 0 }, { Tq: 0 }, { Tk: 0 }, { B: 0, Tk: 0 }, { Tq: 0, Tk: 0 }]) {
    cases.push(attentionCase(`zero-sized ${JSON.stringify(empty)}`, empty));
  }
  cases.push(attentionCase('no keys, with sinks', { Tk: 0 }, (g, { H }) => ({ sinks: g.tensor([H]).data })));
  return cases;
}

function headCases() {
  const cases = [];
  for (const [H, Hkv] of [
    [1, 1],
    [4, 2],
    [6, 1],
    [6, 6],
    [12, 4],
    [10, 2],
    [7, 7],
    [15, 3],
  ]) {
    cases.push(attentionCase(`H = ${H}, Hkv = ${Hkv}`, { H, Hkv, Tq: 11, Tk: 13 }));
    cases.push(attentionCase(`H = ${H}, Hkv = ${Hkv}, one row`, { H, Hkv, Tq: 1, Tk: 77, D: 16 }));
  }
  for (const rank of [2, 3]) {
    const heads = rank === 2 ? { H: 1, Hkv: 1 } : {};
    cases.push(attentionCase(`rank ${rank}`, { B: 1, ...heads, rank }));
    cases.push(attentionCase(`rank ${rank}, causal`, { B: 1, ...heads, rank, Tq: 9, Tk: 9 }, { isCausal: true }));
  }
  for (const Tq of [1, 5, 40]) cases.push(attentionCase(`layout bthd, Tq = ${Tq}`, { Tq, Tk: 43, layout: 'bthd' }));
  return cases;
}

function maskCases() {
  const cases = [];
  for (const kind of ['boolean', 'additive']) {
    const make = (g, shape) => (kind === 'boolean' ? g.booleans(shape) : g.tensor(shape));
    // A pattern's letter is kept where the mask has the full size and a 1 where it is broadcast.
    for (let pattern = 0; pattern < 16; ++pattern) {
      const shape = [2, 3, 5, 7].map((size, axis) => (pattern & (8 >> axis) ? size : 1));
      const sizes = { B: 2, H: 3, Hkv: 3, Tq: 5, Tk: 7 };
      cases.push(attentionCase(`${kind} mask [${shape}]`, sizes, (g) => ({ attnMask: make(g, shape) })));
      const big = [2, 3, 37, 71].map((size, axis) => (pattern & (8 >> axis) ? size : 1));
      const bigSizes = { B: 2, H: 3, Hkv: 1, Tq: 37, Tk: 71, D: 4, Dv: 5 };
      cases.push(attentionCase(`${kind} mask [${big}] of many keys`, bigSizes, (g) => ({ attnMask: make(g, big) })));
    }
    for (const shape of [[7], [1], [5, 7], [5, 1], [1, 7], [6, 5, 7], [6, 1, 7], [1, 5, 7]]) {
      cases.push(
        attentionCase(`${kind} mask of rank ${shape.length} [${shape}]`, {}, (g) => ({ attnMask: make(g, shape) })),
      );
    }
    cases.push(attentionCase(`${kind} mask as bare data`, {}, (g) => ({ attnMask: make(g, [5, 7]).data })));
    cases.push(
      attentionCase(`${kind} mask, causal, window, lengths and ALiBi at once`, { Tq: 33, Tk: 70 }, (g, s) => ({
        attnMask: make(g, [s.H, s.Tq, s.Tk]),
        isCausal: 'bottom-right',
        windowSize: [40, 3],
        keyLengths: Int32Array.of(70, 51),
        queryLengths: Int32Array.of(30, 33),
        alibiSlopes: true,
      })),
    );
  }
  cases.push(
    attentionCase('additive mask with -inf', { Tq: 34, Tk: 67 }, (g, s) => ({
      attnMask: {
        ...g.tensor([s.Tq, s.Tk]),
        data: g.tensor([s.Tq, s.Tk]).data.map((x) => (x > 0.5 ? Number.NEGATIVE_INFINITY : x)),
      },
    })),
    attentionCase('boolean data as an array', {}, (g) => ({
      attnMask: { data: Array.from(g.booleans([5, 7]).data, Boolean), shape: [5, 7] },
    })),
  );
  for (const least of [-3.4028234663852886e38, -65504, -1e4]) {
    cases.push(
      attentionCase(`a row of the finite mask value ${least} is uniform`, { Tq: 5, Tk: 7, D: 8 }, () => ({
        attnMask: { data: new Float32Array(35).fill(0).fill(least, 7, 14), shape: [5, 7] },
        scale: 2 ** -20,
      })),
    );
  }
  return cases;
}

function optionCases() {
  const sizes = { Tq: 35, Tk: 66, D: 8, Dv: 7 };
  const small = { Tq: 3, Tk: 66, D: 8, Dv: 7 };
  const cases = [];
  const both = (name, options) => {
    cases.push(attentionCase(name, sizes, options), attentionCase(`${name}, few rows`, small, options));
  };
  for (const scale of [0, -0.5, 1, 0.01, null, undefined]) both(`scale = ${scale}`, { scale });
  for (const softcap of [0, 0.5, 1, 30]) both(`softcap = ${softcap}`, { softcap, scale: 1 });
  both('alibiSlopes: true', { alibiSlopes: true, isCausal: 'bottom-right' });
  both('alibiSlopes: true, not causal', { alibiSlopes: true, queryOffset: 20 });
  both('alibiSlopes given', (g, s) => ({ alibiSlopes: g.tensor([s.H]).data, isCausal: 'top-left' }));
  both('sinks', (g, s) => ({ sinks: g.tensor([s.H], 2).data }));
  both('sinks, one -inf and one large', (g, s) => ({
    sinks: g.tensor([s.H]).data.with(0, Number.NEGATIVE_INFINITY).with(1, 50),
  }));
  for (const windowSize of [
    [-1, -1],
    [0, 0],
    [3, -1],
    [-1, 2],
    [5, 1],
    [0, -1],
    [64, 0],
    [1000, 1000],
    [70, 0],
  ]) {
    both(`windowSize [${windowSize}], bottom-right`, { windowSize, isCausal: 'bottom-right' });
    both(`windowSize [${windowSize}], queryOffset 17`, { windowSize, queryOffset: 17 });
  }
  for (const queryOffset of [-70, -34, -5, 0, 1, 31, 64, 65, 200]) {
    both(`queryOffset ${queryOffset}, causal`, { queryOffset, isCausal: true });
  }
  both('queryOffset per item', { queryOffset: Int32Array.of(-3, 40), isCausal: true });
  both('keyLengths', { keyLengths: Int32Array.of(0, 41) });
  both('keyLengths and queryLengths, bottom-right', {
    keyLengths: Int32Array.of(66, 33),
    queryLengths: Int32Array.of(2, 3),
    isCausal: 'bottom-right',
  });
  both('keyLengths, top-left, sinks', (g, s) => ({
    keyLengths: Int32Array.of(64, 1),
    isCausal: 'top-left',
    sinks: g.tensor([s.H]).data,
  }));
  both('more queries than keys per item, bottom-right', { keyLengths: Int32Array.of(1, 2), isCausal: 'bottom-right' });
  both('softcap, ALiBi, sinks, window and causal at once', (g, s) => ({
    softcap: 2,
    alibiSlopes: true,
    sinks: g.tensor([s.H]).data,
    windowSize: [20, -1],
    isCausal: 'bottom-right',
  }));
  cases.push(
    attentionCase(
      'equal lengths, isCausal: true',
      { Tq: 40, Tk: 40 },
      { isCausal: true, keyLengths: Int32Array.of(40, 13), queryLengths: Int32Array.of(40, 13) },
    ),
    attentionCase('square window without an alignment', { Tq: 40, Tk: 40 }, { windowSize: [4, 2] }),
  );
  return cases;
}

function weightCases() {
  const cases = [];
  for (const [name, sizes] of [
    ['many rows', { Tq: 35, Tk: 66 }],
    ['one row', { Tq: 1, Tk: 66 }],
  ]) {
    const last = sizes.Tq - 1;
    for (const needWeights of [
      'mean',
      { heads: [4, 1] },
      { rows: [...new Set([last, 0])] },
      { heads: [5], rows: [last] },
      { rows: [] },
      {},
    ]) {
      const options = (g, s) => ({ needWeights, sinks: g.tensor([s.H]).data, isCausal: 'bottom-right' });
      cases.push(attentionCase(`needWeights ${JSON.stringify(needWeights)}, ${name}`, sizes, options));
    }
  }
  for (const [name, sizes] of [
    ['many rows', { Tq: 35, Tk: 66 }],
    ['one row', { Tq: 1, Tk: 66 }],
  ]) {
    for (const stage of ['scores', 'capped', 'masked', 'weights']) {
      for (const part of [{}, { heads: [3, 0, 5], rows: [sizes.Tq - 1] }, { heads: [2, 4], mean: true }]) {
        cases.push(
          attentionCase(`stage ${stage} ${JSON.stringify(part)}, ${name}`, sizes, (g, s) => ({
            needWeights: { stage, ...part },
            softcap: 1.5,
            alibiSlopes: true,
            isCausal: 'bottom-right',
            windowSize: [50, -1],
            keyLengths: Int32Array.of(66, 40),
            attnMask: g.booleans([s.H, s.Tq, s.Tk], 0.8),
            sinks: g.tensor([s.H]).data,
          })),
        );
      }
    }
  }
  cases.push(attentionCase('needWeights mean, bthd', { layout: 'bthd', Tq: 33, Tk: 40 }, { needWeights: 'mean' }));
  return cases;
}

function typeCases() {
  const cases = [];
  for (const dtype of ['float16', 'bfloat16', ['float32', 'float16', 'bfloat16'], ['float16', 'float32', 'float32']]) {
    for (const [Tq, Tk] of [
      [1, 70],
      [5, 7],
      [40, 70],
    ]) {
      for (const D of [8, 33]) {
        cases.push(
          attentionCase(`${dtype}, Tq = ${Tq}, D = ${D}`, { Tq, Tk, D }, { isCausal: 'bottom-right' }, { dtype }),
        );
      }
    }
    cases.push(attentionCase(`${dtype}, bthd`, { Tq: 9, Tk: 66, D: 17, layout: 'bthd' }, {}, { dtype }));
  }
  return cases;
}

function magnitudeCases() {
  const all = (value) => (q, k) => {
    q.data.fill(value);
    k.data.fill(value);
  };
  return [
    // Small integers: the logits themselves are exact in float32.
    attentionCase(
      'logits to 150',
      { Tq: 33, Tk: 65 },
      { scale: 4 },
      {
        change: (q, k) => {
          q.data.set(q.data.map((x) => Math.round(2 * x)));
          k.data.set(k.data.map((x) => Math.round(2 * x)));
        },
      },
    ),
    attentionCase(
      'logits near -20: a padded zero would win',
      { Tq: 33, Tk: 65 },
      {},
      {
        change: (q, k) => {
          q.data.fill(2);
          k.data.forEach((x, i) => {
            k.data[i] = -3.5 + 0.1 * x;
          });
        },
      },
    ),
    attentionCase('equal logits of 1e4', { D: 16 }, { scale: 1 }, { change: all(25) }),
    attentionCase('float16 inputs of 256, D = 128', { D: 128, Dv: 4 }, {}, { dtype: 'float16', change: all(256) }),
    attentionCase('tiny inputs', { Tq: 9, Tk: 35 }, {}, { change: (q) => q.data.set(q.data.map((x) => x * 1e-38)) }),
  ];
}

export const attentionCases = [
  ...sizeCases(),
  ...headCases(),
  ...maskCases(),
  ...optionCases(),
  ...weightCases(),
  ...typeCases(),
  ...magnitudeCases(),
];
