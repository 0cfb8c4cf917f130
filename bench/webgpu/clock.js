// A device whose compute passes can be timed by its own clock, where it has one.

/** What a device may need more of than WebGPU promises. */
const kLimits = ['maxBufferSize', 'maxStorageBufferBindingSize', 'maxComputeWorkgroupStorageSize'];
const kMostPasses = 64;

export async function timedDevice() {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
  if (!adapter) throw new Error('no adapter');
  const features = ['timestamp-query', 'subgroups', 'shader-f16'].filter((name) => adapter.features.has(name));
  const device = await adapter.requestDevice({
    requiredFeatures: features,
    requiredLimits: Object.fromEntries(kLimits.map((name) => [name, adapter.limits[name]])),
  });
  let passes = null;
  const create = device.createCommandEncoder.bind(device);
  device.createCommandEncoder = (descriptor) => {
    const encoder = create(descriptor);
    const begin = encoder.beginComputePass.bind(encoder);
    encoder.beginComputePass = (of) => begin({ ...of, ...passes?.next() });
    return encoder;
  };

  /** ms of all passes of one run by the device's clock, added up; null where it has none. @param {() => unknown} run */
  async function time(run) {
    if (!features.includes('timestamp-query')) return null;
    const querySet = device.createQuerySet({ type: 'timestamp', count: 2 * kMostPasses });
    let used = 0;
    passes = {
      next: () => ({
        timestampWrites: { querySet, beginningOfPassWriteIndex: 2 * used, endOfPassWriteIndex: 2 * used++ + 1 },
      }),
    };
    await run();
    passes = null;
    const size = 16 * used;
    const resolved = device.createBuffer({ size, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
    const staging = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = create();
    encoder.resolveQuerySet(querySet, 0, 2 * used, resolved, 0);
    encoder.copyBufferToBuffer(resolved, 0, staging, 0, size);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const stamps = new BigInt64Array(staging.getMappedRange());
    let sum = 0;
    for (let n = 0; n < used; ++n) sum += Number(stamps[2 * n + 1] - stamps[2 * n]) / 1e6;
    staging.unmap();
    for (const it of [querySet, resolved, staging]) it.destroy();
    return sum > 0 ? sum : null; // engines may round the clock to 100 µs, and to nothing
  }

  /** The least ms of a few runs, by the device's clock or, where it says nothing, by ours. @param {() => unknown} run */
  async function least(run) {
    const times = [];
    for (let n = 0; n < 5; ++n) {
      await device.queue.onSubmittedWorkDone();
      const start = performance.now();
      const own = await time(run);
      if (own === null) {
        await run();
        await device.queue.onSubmittedWorkDone();
      }
      times.push(own ?? performance.now() - start);
    }
    return Math.min(...times);
  }

  return { device, time, least };
}
