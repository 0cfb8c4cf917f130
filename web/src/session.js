// The models and their runs: one run at a time, always of the latest settings, and measurements behind them.

/** @import { Engine } from './engine/client.js' */
/** @import { Store } from './state.js' */
/** @import { BuildInfo, Candidate, Effect, HeadName, HeadScores, ModelInfo, Run } from './types.js' */
/** @import { createViews } from './views/views.js' */

/**
 * What is known of a model: measured once. Until then `stored` scores label the heads, where there are any.
 * @typedef {{ info: ModelInfo, stored: HeadScores | null, scores: HeadScores | null, effects: Map<string, Effect> }} Known
 */

/**
 * @param {Store} store @param {Engine} engine @param {ReturnType<typeof createViews>} views
 * @param {HeadScores} stored of the trained model
 */
export function createSession(store, engine, views, stored) {
  /** @type {BuildInfo | null} */
  let build = null;
  /** @type {Partial<Record<'trained' | 'own', Known>>} */
  const known = {};
  /** @type {Run | null} */
  let run = null;
  /** @type {Candidate[]} */
  let candidates = [];
  let isWanted = false;
  /** @type {Promise<void> | null} */
  let running = null;
  /** @type {Promise<void>} */
  let measuring = Promise.resolve();
  let predictedRow = -1;

  const current = () => (store.state.model === 'untrained' ? null : (known[store.state.model] ?? null));

  /** @param {unknown} error */
  const fail = (error) => views.progress.fail(error instanceof Error ? error.message : String(error));

  async function runOnce() {
    const { model, text, off, heads, causal, rope, seed } = store.state;
    const language = current();
    run = await engine.ask('run', { model, text, off, layer: { heads, causal, rope, seed } });
    if (isWanted || !build) return; // a later one is on its way
    views.progress.fail('');
    views.showRun(build, language?.info ?? null, run);
    predictedRow = -1;
    await predict();
  }

  /** Next tokens of the row in focus, as long as the focus moves. */
  async function predict() {
    const { model, focus } = store.state;
    if (!current() || !run?.tokens.length) {
      views.showNext([]);
      return;
    }
    while (predictedRow !== store.state.focus.row && !isWanted) {
      predictedRow = store.state.focus.row;
      candidates = await engine.ask('predict', { model, row: predictedRow });
    }
    if (focus.row >= 0) views.showNext(candidates);
  }

  async function loop() {
    while (isWanted) {
      isWanted = false;
      try {
        await runOnce();
      } catch (error) {
        fail(error);
      }
    }
    running = null;
  }

  /** @returns {Promise<void>} */
  function compute() {
    const language = current();
    const isThere = (/** @type {HeadName} */ [layer, head]) =>
      !language || (layer < language.info.layers && head < language.info.heads);
    if (!store.state.off.every(isThere)) store.set({ off: store.state.off.filter(isThere) }); // and computes
    isWanted = true;
    running ??= loop();
    measuring = measuring.then(measure).catch(fail);
    return running;
  }

  /** Labels of the heads once a model, effects once a set of heads that are off. */
  async function measure() {
    const { model, off } = store.state;
    const language = current();
    if (!language || model === 'untrained') return;
    const isCurrent = () => language === current();
    const show = () => {
      if (!isCurrent()) return;
      const effectOf = (/** @type {readonly HeadName[]} */ heads) =>
        language.effects.get(JSON.stringify(heads)) ?? null;
      views.showScores(language.scores ?? language.stored);
      views.showEffects({ before: effectOf([]), after: effectOf(store.state.off) });
    };
    show();
    try {
      language.scores ??= await engine.ask('scores', { model });
      show();
      for (const heads of /** @type {HeadName[][]} */ ([[], off])) {
        const key = JSON.stringify(heads);
        if (!language.effects.has(key)) language.effects.set(key, await engine.ask('effect', { model, off: heads }));
        show();
      }
    } catch (error) {
      if (isCurrent()) throw error; // of a model that has been replaced meanwhile nobody wants to know
    }
  }

  store.subscribe((state, changed) => {
    if (!changed.has('focus') || running || predictedRow === state.focus.row) return;
    running = predict()
      .catch(fail)
      .then(() => {
        running = null;
        if (isWanted) running = loop();
      });
  });

  return {
    compute,

    async start() {
      try {
        build = await engine.ask('build');
        if (store.state.model === 'untrained') await compute();
        known.trained = {
          info: await engine.ask('loadTrained', undefined, views.progress.show),
          ...{ stored, scores: null, effects: new Map() },
        };
        views.progress.done();
        await compute();
      } catch (error) {
        fail(new Error(`The kernels did not start: ${error instanceof Error ? error.message : error}`));
        throw error;
      }
    },

    /** @param {File[]} files @returns {Promise<boolean>} whether the model runs */
    async openOwn(files) {
      views.progress.fail('');
      try {
        const info = await engine.ask('loadOwn', files, views.progress.show);
        known.own = { info, stored: null, scores: null, effects: new Map() };
        if (store.state.model === 'own') compute();
        else store.set({ model: 'own', off: [] });
        return true;
      } catch (error) {
        fail(new Error(`This model can’t be shown: ${error instanceof Error ? error.message : error}`));
        return false;
      } finally {
        views.progress.done();
      }
    },

    /** Until the views show the run of the latest settings, and what comes after the row in focus. */
    async settled() {
      while (running) await running;
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
      return run;
    },
    get candidates() {
      return candidates;
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
    /** What came up: version, build, threads, and why not better. */
    get info() {
      return build;
    },
  };
}
