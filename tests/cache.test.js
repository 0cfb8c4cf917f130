// The key/value cache on every build: every type, ring and way to append, against float64 over what the type keeps.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builds, loadBuild } from './support/builds.js';
import { attendBatch, cacheTypes, kept, scaledQueries } from './support/oracle-cache.js';
import { random, seedOf } from './support/random.js';
import { assertClose, assertUnchanged, remember, slice } from './support/tensors.js';

const kSizes = { B: 2, Hkv: 2, H: 6, D: 64, Dv: 32 };
const T = 37;

function tensors(name, { B, Hkv, H, D, Dv } = kSizes, length = T) {
  const g = random(seedOf(name));
  return {
    g,
    q: g.tensor([B, H, length, D]),
    k: g.tensor([B, Hkv, length, D]),
    v: g.tensor([B, Hkv, length, Dv]),
  };
}

const configOf = ({ B, Hkv, D, Dv }, more) => ({ batch: B, numKvHeads: Hkv, headDim: D, valueDim: Dv, ...more });

/**
 * What is kept is compared with as it was kept. Few rows over quantised values also have the weights of 32 keys rounded
 * to 16 bits: half a unit, at most 1.5e-5 of their sum, times the value of each of the keys.
 */
const toleranceOf = (dtype) => ({ absolute: dtype.includes('float') ? 1e-5 : 2e-4 });

/** Lengths of chunks that a sequence is appended in. */
const chunkings = {
  'token by token': new Array(T).fill(1),
  'in chunks': [5, 1, 8, 9, 2, 12],
  'at once': [T],
};

/** Appends chunk by chunk, and gives the outputs of all rows together. */
function runChunks(cache, { q, k, v }, lengths) {
  const [B, H, , Dv] = [...q.shape.slice(0, 3), v.shape[3]];
  const output = { data: new Float32Array(B * H * T * Dv), shape: [B, H, T, Dv] };
  let at = 0;
  for (const length of lengths) {
    const part = (x) => slice(x, 2, at, at + length);
    cache.append(part(k), part(v));
    const rows = cache.attend(part(q)).output;
    for (let n = 0; n < B * H; ++n) {
      output.data.set(rows.data.subarray(n * length * Dv, (n + 1) * length * Dv), (n * T + at) * Dv);
    }
    at += length;
  }
  assert.equal(at, T);
  return output;
}

const rings = [
  {},
  { window: 1 },
  { window: 6 },
  { window: 6, sinkTokens: 3 },
  { window: 1, sinkTokens: 1 },
  { window: 30, sinkTokens: 5 },
  { window: 100, sinkTokens: 2 },
];

for (const build of builds()) {
  const attention = await loadBuild(build);
  const { allocated } = attention.memory;

  describe(`key/value cache, ${build}`, () => {
    for (const dtype of cacheTypes) {
      for (const ring of rings) {
        test(`${dtype}, ${JSON.stringify(ring)}: token by token, in chunks and at once`, () => {
          const all = tensors(`${dtype} ${JSON.stringify(ring)}`);
          const inputs = remember(all.q, all.k, all.v);
          const want = attendBatch(scaledQueries(all.q, dtype), kept(all.k, dtype), kept(all.v, dtype), {
            scale: 1,
            ...ring,
          });
          for (const [way, lengths] of Object.entries(chunkings)) {
            const longest = Math.max(...lengths);
            const needed = ring.window ? (ring.sinkTokens ?? 0) + ring.window + longest - 1 : T;
            for (const capacity of [needed, needed + 1, needed + 11]) {
              const cache = attention.keyValueCache(configOf(kSizes, { dtype, capacity, ...ring }));
              assertClose(runChunks(cache, all, lengths), want, { ...toleranceOf(dtype), what: `${way}, ${capacity}` });
              assert.equal(cache.position, T);
              assert.equal(cache.length, Math.min(T, capacity));
              cache.dispose();
            }
          }
          assertUnchanged(inputs);
          assert.equal(attention.memory.allocated, allocated);
        });
      }
    }
  });
}
