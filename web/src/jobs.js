// What the session does, one job at a time: each asks the engine for the latest settings, and shows what comes.
import { sameView } from './matrices.js';
import { existing, thumbnailPixels, viewOf } from './shown.js';

/** @import { Engine } from './engine/client.js' */
/** @import { createMatrices } from './matrices.js' */
/** @import { Known } from './measuring.js' */
/** @import { Shown, ShownStore } from './shown.js' */
/** @import { Store } from './state.js' */
/** @import { BuildInfo, Progress, Run } from './types.js' */

/** @typedef {'run' | 'write' | 'matrix' | 'row' | 'thumbnails'} Job */

/** What has come up: the build, and the model that is chosen, once it is there. @typedef {{ build: BuildInfo | null, current: () => Known | null }} Models */

/**
 * @param {Store} store @param {ShownStore} shown @param {Engine} engine @param {ReturnType<typeof createMatrices>} matrices
 * @param {Models} models @param {Set<Job>} wanted what waits; a job that calls for another adds it
 */
export function createJobs(store, shown, engine, matrices, models, wanted) {
  let nextLayer = 0;
  let isStopped = false;

  /** @param {Progress} progress */
  const showProgress = (progress) => shown.set({ progress });

  /** What the model is asked. */
  function wantedRun() {
    const { model, backend, text, added, off, mask, scale, temperature, rotary, softcap, window } = store.state;
    return { model, backend, text, added, off, change: { mask, scale, temperature, rotary, softcap, window } };
  }

  /** The matrix of a run, and what else has to change with it. @param {Run} run @param {Partial<Shown>} more */
  async function showRun(run, more) {
    store.set(existing(store.state, run, shown.state.writing !== null));
    wanted.delete('matrix');
    const view = viewOf(store.state, run);
    const matrix = await matrices.of(run, view);
    if (wanted.has('run')) return; // a later one is on its way
    if (!sameView(view, viewOf(store.state, run))) {
      wanted.add('matrix');
      if (run === shown.state.run) return; // nobody waits for this view any more
    }
    shown.set({ run, matrix, view, ...more });
  }

  /** @type {Record<Job, () => Promise<void>>} */
  const jobs = {
    async run() {
      const { heads, causal, rope, seed } = store.state;
      const language = models.current();
      const layer = { heads, causal, rope, seed };
      const run = await engine.ask('run', { ...wantedRun(), layer }, showProgress);
      shown.set({ progress: null });
      if (wanted.has('run')) return;
      const isOther = !sameSizes(run, shown.state.run);
      await showRun(run, {
        ...{ build: run.build ?? models.build, model: language?.info ?? null, failure: '', isStored: false },
        ...(isOther && { thumbnails: [], candidates: [], lens: [] }),
        ...(!language && { scores: null, candidates: [], lens: [] }),
      });
      nextLayer = 0;
      wanted.add('row').add('thumbnails');
    },

    async matrix() {
      const { run } = shown.state;
      if (run) await showRun(run, {});
    },

    /** What comes after the row in focus, and what each layer would say. */
    async row() {
      const { model, backend, focus, lens } = store.state;
      if (!models.current() || !shown.state.run?.tokens.length) return shown.set({ candidates: [], lens: [] });
      const { row } = focus;
      const candidates = await engine.ask('predict', { model, backend, row });
      const layers = lens ? await engine.ask('lens', { model, backend, row }) : [];
      if (!wanted.has('run')) shown.set({ candidates, lens: layers, nextRow: row });
    },

    /** Of one layer; the others follow as long as nothing is more urgent. */
    async thumbnails() {
      const { run } = shown.state;
      const layer = nextLayer;
      if (!run || layer >= run.layers) return;
      const { model, backend, hideFirst } = store.state;
      const part = await engine.ask('thumbnails', { model, backend, layer, side: thumbnailPixels(), hideFirst });
      if (wanted.has('run') || layer !== nextLayer) return;
      const thumbnails = Array.from({ length: run.layers }, (_, l) => shown.state.thumbnails[l] ?? null);
      thumbnails[layer] = part;
      shown.set({ thumbnails });
      nextLayer++;
      wanted.add('thumbnails');
    },

    async write() {
      const { model, backend, writing: settings, added } = store.state;
      if (model === 'untrained' || !models.current()) return;
      const ids = [...added];
      isStopped = false;
      shown.set({ writing: { count: 0, token: '' } });
      try {
        await engine.ask('startWriting', { ...wantedRun(), settings });
        while (!isStopped && !wanted.has('run')) {
          const step = await engine.ask('writeNext', { model, backend });
          if (!step || wanted.has('run')) break;
          ids.push(step.id);
          const last = step.run.tokens.length - 1;
          store.set({ newOnly: true, zoom: null, locked: false, focus: { ...store.state.focus, row: last } });
          await showRun(step.run, { writing: { count: ids.length - added.length, token: step.token } });
          await jobs.row();
        }
      } finally {
        shown.set({ writing: null });
      }
      if (!wanted.has('run') && ids.length > added.length) {
        store.set({ added: ids, newOnly: true, focus: { ...store.state.focus, row: Number.MAX_SAFE_INTEGER } });
      }
    },
  };

  return {
    jobs,
    /** The next thumbnails are those of the first layer again. */
    restartThumbnails() {
      nextLayer = 0;
    },
    /** Ends the writing behind the token that is being written. */
    stopWriting() {
      isStopped = true;
    },
  };
}

/** @param {Run} a @param {Run | null} b */
const sameSizes = (a, b) => b !== null && a.layers === b.layers && a.heads === b.heads;
