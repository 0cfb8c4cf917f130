// The allocator behind every call and resident tensor, against a model of what it holds.
import './support/sources.js';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { contextOf } from '../bindings/instances.js';
import { builds, loadBuild } from './support/builds.js';
import { random } from './support/random.js';

const kHeader = 16;
/** What a block of so many bytes takes. */
const sizeOf = (bytes) => Math.ceil(bytes / 16) * 16 + kHeader;

async function heapOf(build) {
  const attention = await loadBuild(build);
  const { module } = contextOf('test', attention).backend;
  return { module, total: () => module.wasmMemory.buffer.byteLength, attention };
}

for (const build of builds()) {
  describe(`heap, ${build}`, () => {
    test('blocks are aligned, lie apart, keep what is written, and are counted by their sizes alone', async () => {
      const { module } = await heapOf(build);
      const g = random(16);
      const start = module._usedBytes();
      /** @type {{ at: number, bytes: number, mark: number }[]} */
      const held = [];
      const check = ({ at, bytes, mark }) => {
        const view = new Uint8Array(module.wasmMemory.buffer, at, bytes);
        assert(view.every((value) => value === mark));
      };
      let expected = start;
      for (let step = 0; step < 4000; ++step) {
        if (held.length < g.integer(0, 60)) {
          const bytes = g.integer(0, [3, 100, 5000, 200_000][g.integer(0, 3)]);
          const at = module._allocate(bytes);
          assert(at > 0 && at % 16 === 0, `${at}`);
          const mark = g.integer(1, 255);
          new Uint8Array(module.wasmMemory.buffer, at, bytes).fill(mark);
          held.push({ at, bytes, mark });
          expected += sizeOf(bytes);
        } else {
          const [block] = held.splice(g.integer(0, held.length - 1), 1);
          check(block);
          module._release(block.at);
          expected -= sizeOf(block.bytes);
        }
        assert.equal(module._usedBytes(), expected);
      }
      const places = held.sort((a, b) => a.at - b.at);
      for (let n = 1; n < places.length; ++n) assert(places[n - 1].at + places[n - 1].bytes <= places[n].at);
      for (const block of held) check(block);
      for (const { at } of held) module._release(at);
      assert.equal(module._usedBytes(), start);
    });

    test('what is given back joins its neighbours, whatever the order: the same room serves again', async () => {
      const { module, total } = await heapOf(build);
      const g = random(17);
      const first = module._allocate(2 ** 20);
      module._release(first);
      const before = total();
      for (let round = 0; round < 20; ++round) {
        const blocks = Array.from({ length: 60 }, () => module._allocate(2 ** 14));
        assert(Math.max(...blocks) - Math.min(...blocks) < 2 ** 20);
        while (blocks.length) module._release(blocks.splice(g.integer(0, blocks.length - 1), 1)[0]);
        assert.equal(module._allocate(2 ** 20), first);
        module._release(first);
      }
      assert.equal(total(), before);
    });

    test('the smallest that fits is taken, and the last free block grows at the end', async () => {
      const { module } = await heapOf(build);
      const [large, , small] = [5000, 16, 100, 16].map((bytes) => module._allocate(bytes));
      module._release(large);
      module._release(small);
      assert.equal(module._allocate(96), small);
      assert.equal(module._allocate(4000), large);
      const last = module._allocate(2 ** 22);
      module._release(last);
      assert.equal(module._allocate(2 ** 23), last);
    });

    test('no room is null, and changes nothing', async () => {
      const { module } = await heapOf(build);
      const start = module._usedBytes();
      const held = [];
      for (let at = module._allocate(2 ** 30); at !== 0; at = module._allocate(2 ** 30)) held.push(at);
      assert(held.length >= 1 && held.length < 4, `${held.length} GiB`);
      assert.equal(module._allocate(2 ** 32 - 2 ** 16), 0);
      assert.equal(module._usedBytes(), start + held.length * sizeOf(2 ** 30));
      for (const at of held) module._release(at);
      assert.equal(module._usedBytes(), start);
      assert.notEqual(module._allocate(2 ** 30), 0);
    });
  });
}
