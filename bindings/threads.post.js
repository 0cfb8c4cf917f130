// Goes into the glue of the builds with threads, inside its factory (emcc --post-js).
//
// A worker that does not start, because a policy forbids it, its file is missing or a flag of Node does not suit it,
// makes the factory reject. Without this the promise would stay open for ever, and Node would end with the error.
if (!ENVIRONMENT_IS_PTHREAD) {
  const fail = (event) => {
    PThread.terminateAllThreads();
    readyPromiseReject(new Error(`a worker did not start: ${event.message || 'no reason is given'}`));
  };
  for (const worker of PThread.unusedWorkers) {
    if (ENVIRONMENT_IS_NODE) worker.on('error', fail);
    else worker.onerror = fail;
  }
  // A binary that isn't this build's may fail as late as here, behind the last worker, where nobody would catch it.
  const begin = initRuntime;
  initRuntime = () => {
    try {
      begin();
    } catch (error) {
      PThread.terminateAllThreads();
      readyPromiseReject(error);
    }
  };
  const loadWasmModuleToWorker = PThread.loadWasmModuleToWorker;
  PThread.loadWasmModuleToWorker = (worker) => {
    const ready = loadWasmModuleToWorker(worker);
    worker.onerror = fail; // in place of the glue's own, which throws
    return ready;
  };
}
