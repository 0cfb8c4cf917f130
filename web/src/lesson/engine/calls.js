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

/** Answers that nobody here needs any more: their arrays go to the page without a copy. @type {WeakSet<object>} */
const moved = new WeakSet();

/** @param {unknown} answer @returns {ArrayBuffer[]} */
export function buffersToMove(answer) {
  if (typeof answer !== 'object' || answer === null || !moved.has(answer)) return [];
  /** @type {Set<ArrayBuffer>} */
  const buffers = new Set();
  const collect = (/** @type {unknown} */ value) => {
    if (ArrayBuffer.isView(value)) buffers.add(/** @type {ArrayBuffer} */ (value.buffer));
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect);
  };
  collect(answer);
  return [...buffers];
}

/** @param {Workshop} workshop */
export const lessonCalls = ({ attention, languageModel, originOf }) => ({
  /** @param {StepsWanted} wanted @returns {Promise<HeadSteps | null>} */
  async steps({ model, layer, ...wanted }) {
    const kernels = await attention;
    const steps =
      model === 'untrained'
        ? layerSteps(kernels, await createUntrained(kernels).run(wanted.text, layer), wanted.at)
        : languageSteps(kernels, await languageModel(model), originOf(model), wanted);
    if (steps) moved.add(steps);
    return steps;
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
