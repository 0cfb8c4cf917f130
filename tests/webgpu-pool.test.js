// The buffers of a GPU device between calls, on a device of the test's own.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sizeClass } from '../bindings/webgpu/gpu.js';
import { BufferPool, kMostIdle } from '../bindings/webgpu/pool.js';

const kUsage = 0x8c;

function poolOf() {
  const made = [];
  const createBuffer = ({ size, usage }) => {
    const buffer = { size, usage, isDestroyed: false, destroy: () => Object.assign(buffer, { isDestroyed: true }) };
    made.push(buffer);
    return buffer;
  };
  const pool = new BufferPool({ createBuffer });
  /** A buffer that the device has vouched for. */
  const take = (size, usage = kUsage) => {
    const buffer = pool.take(size, usage);
    pool.vouchFor([buffer]);
    return buffer;
  };
  return { pool, made, take };
}

describe('the pool of buffers', () => {
  test('what is given back serves the next of its size and usage', () => {
    const { pool, made, take } = poolOf();
    const first = take(64);
    assert.deepEqual(pool.usage, { bytes: 64, idle: 0 });
    pool.give(first);
    pool.give(first); // twice is harmless
    assert.deepEqual(pool.usage, { bytes: 0, idle: 64 });
    assert.notEqual(take(128), first);
    assert.notEqual(take(64, 0x9), first);
    assert.equal(take(64), first);
    assert.notEqual(take(64), first);
    assert.equal(made.length, 4);
    assert.deepEqual(pool.usage, { bytes: 320, idle: 0 });
  });

  test('a buffer that the device has not vouched for, or that is of no use any more, is not kept', () => {
    const { pool, take } = poolOf();
    const unproven = pool.take(64, kUsage);
    assert.equal(pool.isProven(unproven), false);
    pool.give(unproven);
    const spoiled = take(64);
    assert.equal(pool.isProven(spoiled), true);
    pool.discard(spoiled);
    assert.deepEqual([unproven.isDestroyed, spoiled.isDestroyed], [true, true]);
    assert.deepEqual(pool.usage, { bytes: 0, idle: 0 });
  });

  test('no more than the bound waits: those that wait longest are let go, and very large ones at once', () => {
    const { pool, take } = poolOf();
    const size = kMostIdle / 4;
    const five = Array.from({ length: 5 }, () => take(size));
    const large = take(kMostIdle / 2 + 16);
    for (const buffer of [...five, large]) pool.give(buffer);
    assert.deepEqual(
      [...five, large].map(({ isDestroyed }) => isDestroyed),
      [true, false, false, false, false, true],
    );
    assert.deepEqual(pool.usage, { bytes: 0, idle: kMostIdle });
    assert.equal(take(size), five[4]);
  });

  test('a loss forgets all, the end destroys all', () => {
    for (const end of ['forget', 'close']) {
      const { pool, take } = poolOf();
      const [used, idle] = [take(64), take(64)];
      pool.give(idle);
      pool[end]();
      assert.deepEqual([used.isDestroyed, idle.isDestroyed], end === 'close' ? [true, true] : [false, false]);
      assert.deepEqual(pool.usage, { bytes: 0, idle: 0 });
      pool.give(used); // late, and harmless
      assert.notEqual(take(64), idle);
    }
  });

  test('sizes: multiples of 64, few of them, at most a quarter more than is needed', () => {
    const sizes = new Set();
    for (let bytes = 1; bytes < 2 ** 24; bytes = Math.ceil(bytes * 1.013)) {
      const size = sizeClass(bytes);
      assert.ok(size >= bytes && size % 64 === 0, `${bytes} in ${size}`);
      assert.ok(size <= Math.max(bytes + 63, bytes * 1.25), `${bytes} in ${size}`);
      assert.equal(sizeClass(size), size);
      sizes.add(size);
    }
    assert.ok(sizes.size < 80, `${sizes.size} sizes`);
  });
});
