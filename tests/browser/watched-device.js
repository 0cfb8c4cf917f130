// For a page: devices that are watched by methods of their own, which stand before those of the engine.

/** Runs in the page; gives it `watchedDevice` and `outcome`. */
export function arrange() {
  /**
   * A device that counts what is asked of it; `limits` stand in for its own, and bindings are held to them.
   * `requiredLimits` are asked of the adapter.
   */
  window.watchedDevice = async (limits = {}, requiredLimits = {}) => {
    const adapter = await navigator.gpu.requestAdapter();
    const device = await adapter.requestDevice({
      requiredLimits,
      requiredFeatures: adapter.features.has('subgroups') ? ['subgroups'] : [],
    });
    const own = {};
    for (const name in device.limits) own[name] = device.limits[name];
    Object.defineProperty(device, 'limits', { value: { ...own, ...limits } });
    const seen = {
      created: 0,
      destroyed: 0,
      live: 0,
      pipelines: 0,
      reads: 0,
      submits: 0,
      bound: 0,
      groups: [],
      code: '',
    };
    const wrap = (object, name, make) => {
      object[name] = make(object[name].bind(object));
    };
    wrap(device, 'createBuffer', (create) => (descriptor) => {
      const buffer = create(descriptor);
      ++seen.created;
      ++seen.live;
      wrap(buffer, 'destroy', (destroy) => () => {
        ++seen.destroyed;
        --seen.live;
        destroy();
      });
      wrap(buffer, 'mapAsync', (map) => (...given) => {
        ++seen.reads;
        return map(...given);
      });
      return buffer;
    });
    wrap(device.queue, 'submit', (submit) => (...given) => {
      ++seen.submits;
      submit(...given);
    });
    wrap(device, 'createComputePipeline', (create) => (descriptor) => {
      ++seen.pipelines;
      return create(descriptor);
    });
    wrap(device, 'createShaderModule', (create) => (descriptor) => {
      seen.code += descriptor.code;
      return create(descriptor);
    });
    wrap(device, 'createBindGroup', (create) => (descriptor) => {
      for (const { resource } of descriptor.entries) seen.bound = Math.max(seen.bound, resource.size);
      return create(descriptor);
    });
    wrap(device, 'createCommandEncoder', (create) => () => {
      const encoder = create();
      wrap(encoder, 'beginComputePass', (begin) => () => {
        const pass = begin();
        wrap(pass, 'dispatchWorkgroups', (dispatch) => (x, y = 1) => {
          seen.groups.push([x, y]);
          dispatch(x, y);
        });
        return pass;
      });
      return encoder;
    });
    return { device, seen };
  };
  /** The code of what a promise rejects with, or what it gives; 'pending' after ten seconds. */
  window.outcome = (promise) =>
    Promise.race([
      promise.then(
        () => 'done',
        (error) => error.code ?? String(error),
      ),
      new Promise((done) => setTimeout(done, 10_000, 'pending')),
    ]);
}
