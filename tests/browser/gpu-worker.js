/** Runs in the page: `attention` becomes an instance on the GPU in a worker; a model of it or of wasm comes by `modelOn`. */
export async function bringWorker() {
  window.attention.dispose();
  window.workerEntry = await import('/dist/worker.js');
  window.attention = await window.workerEntry.load({ backend: 'webgpu' });
  window.modelOn = (attention, options) => {
    const { load } = attention === window.attention ? window.workerEntry.WorkerTransformer : window.Transformer;
    return load(attention, options);
  };
}
