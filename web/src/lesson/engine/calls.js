// What the lesson asks the worker for.
import { createUntrained } from '../../engine/untrained.js';
import { measureCost, ropeScores, scaleExperiment } from './experiments.js';
import { languageSteps, layerSteps } from './steps.js';

/** @import { Attention } from 'attention-wasm' */
/** @import { LanguageModel } from '../../engine/language-model.js' */
/** @import { LayerSettings } from '../../engine/untrained.js' */
/** @import { HeadName, WhatIf } from '../../types.js' */
/** @import { Cost, RopeQuestion, ScaleResult } from './experiments.js' */
/** @import { HeadSteps, Origin } from './steps.js' */

/** @typedef {'trained' | 'own' | 'untrained'} ModelName */
/**
 * @typedef {object} Workshop what the worker has
 * @property {Promise<Attention>} attention
 * @property {(name: ModelName) => Promise<LanguageModel>} languageModel
 * @property {(name: ModelName) => Origin} originOf
 */
/** @typedef {{ model: ModelName, text: string, added: readonly number[], off: HeadName[], change: WhatIf, at: HeadName, layer: LayerSettings }} StepsWanted */

/** @param {Workshop} workshop */
export const lessonCalls = ({ attention, languageModel, originOf }) => ({
  /** @param {StepsWanted} wanted @returns {Promise<HeadSteps | null>} */
  async steps({ model, layer, ...wanted }) {
    const kernels = await attention;
    if (model !== 'untrained') return languageSteps(kernels, await languageModel(model), originOf(model), wanted);
    return layerSteps(kernels, createUntrained(kernels).run(wanted.text, layer), wanted.at);
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
