// The reader of safetensors files: what it gives back, what it refuses, and that no bytes make it hang.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AttentionError, load } from 'attention-wasm';
import { readSafetensors } from 'attention-wasm/safetensors';
import fc from 'fast-check';
import { errorNaming } from './support/field.js';
import { multiHeadAttention as layerOracle } from './support/oracle-layers.js';
import { random } from './support/random.js';
import { assertClose, assertSameBits, cast } from './support/tensors.js';

const kSizes = { F32: 4, F16: 2, BF16: 2, I64: 8, U8: 1, F64: 8 };
const kDtypes = { float32: 'F32', float16: 'F16', bfloat16: 'BF16' };

/** A file of a header (an object, or its text) and the bytes after it; `length` is what it says of the header. */
function fileOf(header, body = new Uint8Array(), { pad = 0, length } = {}) {
  const text = typeof header === 'string' ? header : JSON.stringify(header);
  const bytes = typeof header === 'object' && header instanceof Uint8Array ? header : new TextEncoder().encode(text);
  const file = new Uint8Array(8 + bytes.length + pad + body.length);
  new DataView(file.buffer).setBigUint64(0, BigInt(length ?? bytes.length + pad), true);
  file.set(bytes, 8);
  file.fill(0x20, 8 + bytes.length, 8 + bytes.length + pad);
  file.set(body, 8 + bytes.length + pad);
  return file;
}

/** A file as the usual writers make it: tensors one after the other, their first byte on a multiple of 8. */
function write(tensors, metadata) {
  const entries = metadata ? [['__metadata__', metadata]] : [];
  const parts = [];
  let at = 0;
  for (const [name, { data, shape, dtype = 'float32' }] of Object.entries(tensors)) {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    entries.push([name, { dtype: kDtypes[dtype], shape, data_offsets: [at, at + bytes.length] }]);
    parts.push(bytes);
    at += bytes.length;
  }
  const body = new Uint8Array(at);
  at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  const header = Object.fromEntries(entries);
  const { length } = new TextEncoder().encode(JSON.stringify(header));
  return fileOf(header, body, { pad: (8 - (length % 8)) % 8 });
}

/** `dtype` of float16 is left out by `cast`, but is in what is read. */
const typed = (tensor, dtype) => ({ ...cast(tensor, dtype), dtype });

const g = random(1);
const sample = {
  'ä "quoted"': typed(g.tensor([5, 0, 2]), 'float32'),
  'a.weight': typed(g.tensor([3, 4]), 'float32'),
  'a.bias': typed(g.tensor([2, 2]), 'float16'),
  scalar: typed(g.tensor([]), 'bfloat16'),
  ['__proto__']: typed(g.tensor([1]), 'bfloat16'),
};

function assertSameTensors(got, want) {
  assert.deepEqual(Object.keys(got).sort(), Object.keys(want).sort());
  for (const [name, tensor] of Object.entries(want)) {
    const read = Object.getOwnPropertyDescriptor(got, name).value;
    assert.deepEqual([read.dtype, [...read.shape]], [tensor.dtype, [...tensor.shape]], name);
    assert.equal(read.data.constructor, tensor.data.constructor, name);
    assert.deepEqual(read.data, tensor.data, name);
  }
}

describe('readSafetensors', () => {
  test('every type and shape; metadata is left out', () => {
    const file = write(sample, { format: 'pt' });
    assertSameTensors(readSafetensors(file), sample);
    assertSameTensors(readSafetensors(file.buffer), sample);
    assertSameTensors(readSafetensors(new DataView(file.buffer)), sample);
    assert.deepEqual(readSafetensors(fileOf({})), {});
  });

  test('views without a copy where alignment allows, else a copy of that tensor alone', () => {
    const aligned = write(sample);
    for (const { data } of Object.values(readSafetensors(aligned))) assert.equal(data.buffer, aligned.buffer);
    for (let shift = 1; shift < 8; ++shift) {
      const buffer = new ArrayBuffer(aligned.length + shift);
      const file = new Uint8Array(buffer, shift);
      file.set(aligned);
      const tensors = readSafetensors(file);
      assertSameTensors(tensors, sample);
      for (const [name, { data }] of Object.entries(tensors)) {
        assert.equal(data.buffer === buffer, shift % data.BYTES_PER_ELEMENT === 0, name);
      }
    }
    const odd = fileOf(
      { b: { dtype: 'U8', shape: [1], data_offsets: [0, 1] }, w: { dtype: 'F32', shape: [1], data_offsets: [1, 5] } },
      Uint8Array.of(7, 0, 0, 128, 63),
    );
    assert.deepEqual([...readSafetensors(odd, { skipUnsupported: true }).w.data], [1]);
  });

  test('shared memory', () => {
    const file = write(sample);
    const shared = new Uint8Array(new SharedArrayBuffer(file.length));
    shared.set(file);
    for (const bytes of [shared, shared.buffer]) {
      const tensors = readSafetensors(bytes);
      assert.equal(tensors['a.weight'].data.buffer, shared.buffer);
      assert.deepEqual([...tensors['a.weight'].data], [...sample['a.weight'].data]);
    }
  });

  test('types that the package does not have are refused, or left out on request', () => {
    const header = {
      ids: { dtype: 'I64', shape: [2], data_offsets: [0, 16] },
      w: { dtype: 'F32', shape: [1], data_offsets: [16, 20] },
      small: { dtype: 'F4', shape: [3, 2], data_offsets: [20, 23] },
    };
    const file = fileOf(header, new Uint8Array(23));
    assert.throws(() => readSafetensors(file), errorNaming('UNSUPPORTED', 'ids', 'skipUnsupported', 'I64'));
    assert.deepEqual(Object.keys(readSafetensors(file, { skipUnsupported: true })), ['w']);
  });

  const w = { dtype: 'F32', shape: [2], data_offsets: [0, 8] };
  const after = { dtype: 'F32', shape: [1], data_offsets: [8, 12] };
  const body = new Uint8Array(12);
  const json = JSON.stringify;
  /** Files: name, file, code, words of the message. */
  const refused = [
    ['no bytes', new Uint8Array(), 'INVALID_SHAPE', 'at least 8', 'got 0'],
    ['half a length', new Uint8Array(7), 'INVALID_SHAPE', 'got 7'],
    [
      'a header longer than the file',
      fileOf({ w, after }, body, { length: 200 }),
      'INVALID_SHAPE',
      'must hold the header',
    ],
    ['an oversized header', fileOf({}, body, { length: 100_000_001 }), 'INVALID_SHAPE', 'at most 100000000 bytes'],
    [
      'a length beyond all numbers',
      fileOf({}, body, { length: 2n ** 64n - 1n }),
      'INVALID_SHAPE',
      '18446744073709551615',
    ],
    ['no header', fileOf('', body), 'INVALID_OPTION', "begin with '{'"],
    ['a header that begins with space', fileOf(` ${json({ w, after })}`, body), 'INVALID_OPTION', "begin with '{'"],
    ['a list', fileOf('[]', body), 'INVALID_OPTION', "begin with '{'"],
    ['half a header', fileOf(json({ w, after }).slice(0, -3), body), 'INVALID_OPTION', 'must be JSON'],
    ['bytes that are not UTF-8', fileOf(Uint8Array.of(0x7b, 0xff, 0x7d)), 'INVALID_OPTION', 'must be UTF-8'],
    ['a name twice', fileOf(`{"w":${json(w)},"w":${json(w)}}`, body), 'INVALID_OPTION', 'once', "'w'"],
    [
      'a name twice, written in two ways',
      fileOf(`{"w":${json(w)},"\\u0077" :${json(w)}}`, body),
      'INVALID_OPTION',
      "'w'",
    ],
    ['a dtype twice', fileOf(`{"w":{"dtype":"F32",${json(w).slice(1)}}`, body), 'INVALID_OPTION', "'dtype'"],
    ['metadata of numbers', fileOf({ __metadata__: { epoch: 3 } }), 'INVALID_OPTION', '__metadata__'],
    ['metadata that is a list', fileOf({ __metadata__: [] }), 'INVALID_OPTION', '__metadata__'],
    ['a tensor that is null', fileOf({ w: null }), 'INVALID_OPTION', 'w must be an object'],
    ['a missing entry', fileOf({ w: { dtype: 'F32', shape: [2] } }), 'INVALID_OPTION', 'w must be an object'],
    ['a surplus entry', fileOf({ w: { ...w, strides: [1] } }, body), 'INVALID_OPTION', 'w must be an object'],
    ['an unknown dtype', fileOf({ w: { ...w, dtype: 'F31' }, after }, body), 'INVALID_DTYPE', 'dtype of w', "'F31'"],
    ['a dtype of an object’s own names', fileOf({ w: { ...w, dtype: 'constructor' } }), 'INVALID_DTYPE', 'constructor'],
    ['a dtype that is a number', fileOf({ w: { ...w, dtype: 32 } }), 'INVALID_DTYPE', 'got 32'],
    [
      'a wrong dtype',
      fileOf({ w: { ...w, dtype: 'F16' }, after }, body),
      'INVALID_SHAPE',
      'must be 4 bytes apart for F16',
    ],
    ['a negative size', fileOf({ w: { ...w, shape: [-2] } }, body), 'INVALID_SHAPE', 'shape of w'],
    ['a fractional size', fileOf({ w: { ...w, shape: [0.5, 4] } }, body), 'INVALID_SHAPE', 'shape of w'],
    ['a size too large', fileOf({ w: { ...w, shape: [2 ** 60] } }, body), 'INVALID_SHAPE', 'shape of w'],
    [
      'sizes whose product is too large',
      fileOf({ w: { ...w, shape: new Array(30).fill(2 ** 40) } }),
      'INVALID_SHAPE',
      'Infinity',
    ],
    ['a shape that is no list', fileOf({ w: { ...w, shape: 2 } }, body), 'INVALID_SHAPE', 'shape of w'],
    ['three offsets', fileOf({ w: { ...w, data_offsets: [0, 8, 8] } }, body), 'INVALID_SHAPE', 'data_offsets of w'],
    ['offsets backwards', fileOf({ w: { ...w, data_offsets: [8, 0] } }, body), 'INVALID_SHAPE', 'data_offsets of w'],
    [
      'offsets that do not fit the shape',
      fileOf({ w: { ...w, data_offsets: [0, 12] } }, body),
      'INVALID_SHAPE',
      '8 bytes apart',
    ],
    [
      'an overlap',
      fileOf({ w, after: { ...after, data_offsets: [4, 8] } }, body),
      'INVALID_SHAPE',
      'after must begin',
      'at 8, got 4',
    ],
    ['the same bytes twice', fileOf({ w, w2: w }, body.subarray(4)), 'INVALID_SHAPE', 'w2 must begin'],
    [
      'a hole',
      fileOf({ w, after: { ...after, data_offsets: [12, 16] } }, new Uint8Array(16)),
      'INVALID_SHAPE',
      'at 8, got 12',
    ],
    ['a hole before all', fileOf({ after }, body), 'INVALID_SHAPE', 'after must begin'],
    ['a truncated tensor', fileOf({ w, after }, body.subarray(1)), 'INVALID_SHAPE', 'must fill the 11 bytes', 'got 12'],
    ['bytes left over', fileOf({ w }, body), 'INVALID_SHAPE', 'must fill the 12 bytes', 'got 8'],
    ['text', 'x', 'INVALID_DTYPE', 'bytes must be an ArrayBuffer'],
    ['nothing', undefined, 'INVALID_DTYPE', 'bytes must be an ArrayBuffer'],
  ];
  for (const [name, file, code, ...words] of refused) {
    test(`refused: ${name}`, () => {
      assert.throws(() => readSafetensors(file), errorNaming(code, 'readSafetensors: ', ...words));
    });
  }

  test('refused: unknown options', () => {
    assert.throws(() => readSafetensors(fileOf({}), { copy: true }), errorNaming('INVALID_OPTION', 'copy'));
    assert.throws(() => readSafetensors(fileOf({}), { skipUnsupported: 1 }), errorNaming('INVALID_OPTION'));
  });

  /** Right tensors, within the file; or an AttentionError. */
  function assertRightOrRefused(file) {
    let tensors;
    try {
      tensors = readSafetensors(file, { skipUnsupported: true });
    } catch (error) {
      assert.ok(error instanceof AttentionError, String(error?.stack));
      return false;
    }
    for (const { data, shape } of Object.values(tensors)) {
      assert.equal(
        data.length,
        shape.reduce((a, b) => a * b, 1),
      );
      assert.ok(data.byteLength <= file.length);
    }
    return true;
  }

  test('fuzz: random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void assertRightOrRefused(bytes)),
      {
        numRuns: 3000,
      },
    );
  });

  test('fuzz: random headers', () => {
    const size = fc.oneof(fc.nat(4), fc.nat(40), fc.double(), fc.maxSafeInteger());
    const entry = fc.record({
      dtype: fc.constantFrom(...Object.keys(kSizes), 'F4', 'X'),
      shape: fc.array(size, { maxLength: 3 }),
      data_offsets: fc.array(size, { minLength: 1, maxLength: 3 }),
    });
    const header = fc.dictionary(fc.string({ maxLength: 4 }), fc.oneof(entry, fc.jsonValue()), { maxKeys: 4 });
    const file = fc.tuple(header, fc.uint8Array({ maxLength: 40 }), fc.nat(9));
    fc.assert(
      fc.property(file, ([head, bytes, pad]) => void assertRightOrRefused(fileOf(head, bytes, { pad }))),
      {
        numRuns: 3000,
      },
    );
  });

  test('fuzz: a right file with some bytes changed, taken out or put in', () => {
    const right = write(sample, { format: 'pt' });
    const edit = fc.record({ at: fc.nat(right.length - 1), take: fc.nat(3), put: fc.uint8Array({ maxLength: 3 }) });
    let read = 0;
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
        const bytes = [...right];
        for (const { at, take, put } of edits) bytes.splice(at, take, ...put);
        if (assertRightOrRefused(Uint8Array.from(bytes))) ++read;
      }),
      { numRuns: 5000 },
    );
    assert.ok(read > 50, `only ${read} files were read: the others don't test much`);
  });

  test('headers that could take long', () => {
    for (const text of [
      `{"a":${'['.repeat(1e5)}`,
      `{"a":${'['.repeat(1e5)}${']'.repeat(1e5)}}`,
      `{"${'\\"'.repeat(2e5)}`,
      `{${'"a" '.repeat(1e5)}`,
      `{"a":"${'x'.repeat(1e6)}"${' '.repeat(1e6)}}`,
    ]) {
      const start = performance.now();
      assert.equal(assertRightOrRefused(fileOf(text)), false);
      assert.ok(performance.now() - start < 5000, text.slice(0, 20));
    }
  });

  test('a layer loads its state dict from a file', async () => {
    const attention = await load({ simd: 'scalar' });
    const names = ['q_proj.weight', 'k_proj.weight', 'v_proj.weight', 'out_proj.weight'];
    const state = Object.fromEntries(names.map((name) => [name, typed(g.tensor([12, 12], 0.3), 'float32')]));
    const mha = attention.multiHeadAttention({ dModel: 12, numHeads: 3 });
    mha.loadStateDict(readSafetensors(write(state, { format: 'pt' })));
    const x = g.tensor([2, 5, 12]);
    assertClose(mha.forward(x).output, layerOracle({ numHeads: 3 }, state, x).output);
    for (const name of names) assertSameBits(mha.stateDict()[name], state[name]);
    mha.dispose();
  });
});
