// The models and what is shown of them: one job at a time, the most urgent first, always for the latest settings; and
// measurements behind them.
import { createJobs } from './jobs.js';
import { createMatrices } from './matrices.js';
import { measure } from './measuring.js';
import { afterPause } from './pause.js';
import { existing, viewOf } from './shown.js';
import { kDefaults } from './state.js';

/** @import { Engine } from './engine/client.js' */
/** @import { Job, Models } from './jobs.js' */
/** @import { Known } from './measuring.js' */
/** @import { ShownStore } from './shown.js' */
/** @import { State, Store } from './state.js' */
/** @import { HeadName, HeadScores, Matrix, MatrixView, Progress } from './types.js' */

/** Settings after which the model runs again, or the matrix alone. @type {readonly (keyof State)[]} */
// biome-ignore format: two subjects, two lines
const kRerun = [
  'model', 'backend', 'text', 'added', 'off', 'heads', 'causal', 'rope', 'seed',
  'mask', 'scale', 'temperature', 'rotary', 'softcap', 'window',
];
/** @type {readonly (keyof State)[]} */
const kReview = ['at', 'peek', 'combine', 'chosen', 'show', 'hideFirst', 'mass', 'newOnly'];

const kRest = 40; // milliseconds

/** The most urgent first. @type {readonly Job[]} */
const kJobs = ['run', 'write', 'matrix', 'row', 'thumbnails'];

/**
 * @param {Store} store @param {ShownStore} shown @param {Engine} engine
 * @param {{ scores: HeadScores, matrixOf: (view: MatrixView) => Matrix | null }} stored of the trained model and of the example
 */
export function createSession(store, shown, engine, stored) {
  /** @type {Partial<Record<'trained' | 'own', Known>>} */
  const known = {};
  /** @type {Set<Job>} */
  const wanted = new Set();
  /** @type {Promise<void> | null} */
  let running = null;
  /** @type {Promise<void>} */
  let measuring = Promise.resolve();
  const matrices = createMatrices((view) => {
    const { model, backend } = store.state;
    return engine.ask('matrix', { model, backend, view });
  });

  const current = () => (store.state.model === 'untrained' ? null : (known[store.state.model] ?? null));
  /** @type {Models} */
  const models = { build: null, current };
  const { jobs, restartThumbnails, stopWriting } = createJobs(store, shown, engine, matrices, models, wanted);
  const isReady = () => models.build !== null && (store.state.model === 'untrained' || current() !== null);

  /** @param {Progress} progress */
  const showProgress = (progress) => shown.set({ progress });

  /** @param {unknown} error */
  const fail = (error) => shown.set({ failure: error instanceof Error ? error.message : String(error) });

  /** The GPU can't be used, or no more: wasm computes, and the reason is told. @param {unknown} error */
  async function refuseGpu(error) {
    const { code, message } = /** @type {{ code?: string, message: string }} */ (error);
    const isLost = code === 'DEVICE_LOST';
    shown.set({
      ...{ progress: null, writing: null },
      gpuRefusal: isLost ? `The GPU went away (${message}).` : `WebGPU can’t be used here: ${message}.`,
    });
    await engine.ask('leaveGpu');
    store.set({ backend: 'wasm' }); // and computes
  }

  /** The matrix that the state asks for: at once where it is known. */
  function review() {
    const { run, isStored, writing } = shown.state;
    if (!run) return;
    store.set(existing(store.state, run, writing !== null));
    const view = viewOf(store.state, run);
    const matrix = isStored ? stored.matrixOf(view) : matrices.known(run, view);
    if (!matrix) want('matrix');
    else {
      wanted.delete('matrix');
      shown.set({ matrix, view });
    }
  }

  async function loop() {
    for (let job = nextJob(); job; job = nextJob()) {
      wanted.delete(job);
      try {
        await jobs[job]();
      } catch (error) {
        if (store.state.backend === 'webgpu') await refuseGpu(error);
        else fail(error);
      }
    }
    running = null;
  }

  const nextJob = () => (isReady() ? kJobs.find((job) => wanted.has(job)) : undefined);

  /** @param {Job} job */
  function want(job) {
    wanted.add(job);
    if (isReady()) running ??= loop();
    return running ?? Promise.resolve();
  }

  // On the way over many rows nobody reads what comes next.
  const rest = afterPause(kRest, () => want('row'));

  /** @returns {Promise<void>} */
  function compute() {
    const language = current();
    const isThere = (/** @type {HeadName} */ [layer, head]) =>
      !language || (layer < language.info.layers && head < language.info.heads);
    if (!store.state.off.every(isThere)) store.set({ off: store.state.off.filter(isThere) }); // and computes
    const done = want('run');
    measuring = measuring.then(() => measure(store, shown, engine, current)).catch(fail);
    return done;
  }

  store.subscribe((state, changed) => {
    const has = (/** @type {keyof State} */ name) => changed.has(name);
    // What was written belongs to the text that it was written behind.
    if ((has('text') || has('model')) && !has('added') && state.added.length > 0) {
      store.set({ added: kDefaults.added }); // and computes
      return;
    }
    if (kRerun.some(has)) compute();
    else if (kReview.some(has)) review();
    if (has('hideFirst')) restartThumbnails();
    if (has('hideFirst')) want('thumbnails');
    if (has('lens')) want('row');
    else if (has('focus') && state.focus.row !== shown.state.nextRow) rest.ask(undefined);
  });

  return {
    compute,
    /** Writes on behind the text. @returns {Promise<void>} */
    write: () => want('write'),
    /** Ends the writing behind the token that is being written. */
    stop: stopWriting,

    async start() {
      try {
        models.build = await engine.ask('build');
        if (store.state.model === 'untrained') await compute();
        known.trained = {
          info: await engine.ask('loadTrained', undefined, showProgress),
          ...{ stored: stored.scores, scores: null, effects: new Map() },
        };
        shown.set({ progress: null });
        await compute();
      } catch (error) {
        fail(new Error(`The kernels did not start: ${error instanceof Error ? error.message : error}`));
        throw error;
      }
    },

    /** @param {File[]} files @returns {Promise<boolean>} whether the model runs */
    async openOwn(files) {
      shown.set({ failure: '' });
      try {
        const info = await engine.ask('loadOwn', files, showProgress);
        known.own = { info, stored: null, scores: null, effects: new Map() };
        if (store.state.model === 'own') compute();
        else store.set({ model: 'own', off: [] });
        return true;
      } catch (error) {
        fail(new Error(`This model can’t be shown: ${error instanceof Error ? error.message : error}`));
        return false;
      } finally {
        shown.set({ progress: null });
      }
    },

    /** A matrix of the run that is shown, whatever the page shows of it. @param {Partial<MatrixView>} view */
    matrixOf(view) {
      const { run } = shown.state;
      const plain = /** @type {const} */ ({
        combine: 'one',
        show: 'weights',
        hideFirst: false,
        mass: 1,
        newOnly: false,
      });
      const whole = run && viewOf({ ...store.state, ...plain }, run);
      const { model, backend } = store.state;
      return whole ? engine.ask('matrix', { model, backend, view: { ...whole, ...view } }) : null;
    },

    /** The logit lens on a row of the run that is shown, whether the page shows it or not. @param {number} row */
    lensAt(row) {
      const { model, backend } = store.state;
      return model === 'untrained' ? Promise.resolve([]) : engine.ask('lens', { model, backend, row });
    },

    /** Until the views show what the latest settings ask for. */
    async settled() {
      for (let next = running ?? rest.waiting; next; next = running ?? rest.waiting) await next;
    },
    /** Until the labels and the effects are measured, too. */
    async measured() {
      await this.settled();
      await measuring;
    },

    /** What the reader has chosen, and the cell in focus. */
    get state() {
      return store.state;
    },
    get run() {
      return shown.state.run;
    },
    get matrix() {
      return shown.state.matrix;
    },
    get candidates() {
      return shown.state.candidates;
    },
    get lens() {
      return shown.state.lens;
    },
    get scores() {
      return current()?.scores ?? null;
    },
    get effects() {
      return Object.fromEntries(current()?.effects ?? []);
    },
    get model() {
      return current()?.info ?? null;
    },
    /** What came up on wasm: version, build, threads, and why not better. */
    get info() {
      return models.build;
    },
    /** Why the GPU doesn't compute, if it was chosen and can't. */
    get gpuRefusal() {
      return shown.state.gpuRefusal;
    },
  };
}

/** @typedef {ReturnType<typeof createSession>} Session */
