// What a model does on average, and without some of its heads: measured behind the runs that the reader waits for.

/** @import { Engine } from './engine/client.js' */
/** @import { ShownStore } from './shown.js' */
/** @import { Store } from './state.js' */
/** @import { Effect, HeadName, HeadScores, ModelInfo } from './types.js' */

/**
 * What is known of a model: measured once. Until then `stored` scores label the heads, where there are any.
 * @typedef {{ info: ModelInfo, stored: HeadScores | null, scores: HeadScores | null, effects: Map<string, Effect> }} Known
 */

/**
 * Labels of the heads once a model, effects once a set of heads that are off.
 * @param {Store} store @param {ShownStore} shown @param {Engine} engine @param {() => Known | null} current
 */
export async function measure(store, shown, engine, current) {
  const { model, off } = store.state;
  const language = current();
  if (!language || model === 'untrained') return;
  const isCurrent = () => language === current();
  const show = () => {
    if (!isCurrent()) return;
    const effectOf = (/** @type {readonly HeadName[]} */ heads) => language.effects.get(JSON.stringify(heads)) ?? null;
    shown.set({
      scores: language.scores ?? language.stored,
      effects: { before: effectOf([]), after: effectOf(store.state.off) },
    });
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
