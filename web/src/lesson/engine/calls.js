// What the lesson asks the worker for.
import { measureCost, ropeScores, scaleExperiment } from './experiments.js';
import { languageSteps, layerSteps } from './steps.js';

/** @import { Attention } from 'attention-wasm' */
/** @import { LanguageModel } from '../../engine/language-model.js' */
/** @import { LayerSettings } from '../../engine/untrained.js' */
/** @import { HeadName, Run } from '../../types.js' */
/** @import { Cost, RopeQuestion, ScaleResult } from './experiments.js' */
/** @import { HeadSteps, Source } from './steps.js' */

/** @typedef {'trained' | 'own' | 'untrained'} ModelName */
/**
 * @typedef {object} Workshop what the worker has
 * @property {Promise<Attention>} attention
 * @property {(name: ModelName) => Promise<LanguageModel>} languageModel
 * @property {(name: ModelName) => Source} sourceOf
 * @property {(text: string, settings: LayerSettings) => Promise<Run>} runUntrained
 */

/** @param {Workshop} workshop */
export const lessonCalls = ({ attention, languageModel, sourceOf, runUntrained }) => ({
  /** @param {{ model: ModelName, text: string, off: HeadName[], at: HeadName, layer: LayerSettings }} wanted @returns {Promise<HeadSteps | null>} */
  async steps({ model, text, off, at, layer }) {
    if (model === 'untrained') return layerSteps(await attention, await runUntrained(text, layer), at);
    return languageSteps(await attention, await languageModel(model), sourceOf(model), { text, off, at });
  },

  /** @returns {Promise<ScaleResult[]>} */
  async scaleExperiment() {
    return scaleExperiment(await attention);
  },

  /** @param {RopeQuestion} question */
  async ropeScores(question) {
    return ropeScores(await attention, question);
  },

  /** @param {{ T: number }} wanted @returns {Promise<Cost>} */
  async cost({ T }) {
    return measureCost(T);
  },

  /** @param {{ model: ModelName }} wanted Sizes as the model's configuration has them. */
  async sizes({ model }) {
    return (await languageModel(model)).sizes;
  },
});
