// Where everything is computed: the page asks by messages, so that it never waits for a kernel.
import { load } from 'attention-wasm';
import { lessonCalls } from '../lesson/engine/calls.js';
import { ownFiles, shippedFiles } from './files.js';
import { LanguageModel } from './language-model.js';
import { effectOf, headScores } from './measure.js';
import { createUntrained } from './untrained.js';

/** @import { BuildInfo, Candidate, Effect, HeadName, HeadScores, ModelInfo, Progress, Run } from '../types.js' */
/** @import { Source } from '../lesson/engine/steps.js' */
/** @import { LayerSettings } from './untrained.js' */

/** @typedef {'trained' | 'own' | 'untrained'} ModelName */

/** @type {Promise<Awaited<ReturnType<typeof load>>>} */
const attention = load();
/** @type {{ trained?: Promise<LanguageModel>, own?: Promise<LanguageModel> }} */
const models = {};
/** @type {ReturnType<typeof createUntrained> | null} */
let untrained = null;
/** Of a model of the reader's own the files are not kept: they may be large. @type {Partial<Record<ModelName, Source>>} */
const sources = {};
/** @param {(progress: Progress) => void} report */
const trained = (report) => {
  models.trained ??= Promise.all([attention, shippedFiles(report)]).then(([kernels, files]) => {
    sources.trained = { config: files.config, weights: files.weights[0] };
    return LanguageModel.load(kernels, files, report);
  });
  return models.trained;
};

/** @param {ModelName} name @returns {Promise<LanguageModel>} */
async function languageModel(name) {
  const model = await (name === 'own' ? models.own : trained(() => {}));
  if (!model) throw new Error('no model of your own is loaded');
  return model;
}

/** @param {string} text @param {LayerSettings} settings @returns {Promise<Run>} */
async function runUntrained(text, settings) {
  untrained ??= createUntrained(await attention);
  return untrained.run(text, settings);
}

/** @param {ModelName} name @returns {Source} */
function sourceOf(name) {
  const source = sources[name];
  if (!source) throw new Error('no such model is loaded');
  return source;
}

/** @typedef {(progress: Progress) => void} Report */

/** What the page may ask for: each takes an argument, and a function to tell how far it has come. */
export const calls = {
  /** @returns {Promise<BuildInfo>} */
  async build() {
    return (await attention).info;
  },

  /** @param {undefined} _ @param {Report} report @returns {Promise<ModelInfo>} */
  async loadTrained(_, report) {
    return (await trained(report)).info;
  },

  /** The model before stays until this one works. @param {File[]} files @param {Report} report @returns {Promise<ModelInfo>} */
  async loadOwn(files, report) {
    const made = await ownFiles(files, report);
    const model = await LanguageModel.load(await attention, made, report);
    try {
      model.run('a', []); // what can't be run is refused here
    } catch (error) {
      model.dispose();
      throw error;
    }
    const former = models.own;
    models.own = Promise.resolve(model);
    sources.own = { config: made.config, weights: null };
    (await former)?.dispose();
    return model.info;
  },

  /** @param {{ model: ModelName, text: string, off: HeadName[], layer: LayerSettings }} wanted @returns {Promise<Run>} */
  async run({ model, text, off, layer }) {
    if (model !== 'untrained') return (await languageModel(model)).run(text, off);
    return runUntrained(text, layer);
  },

  /** @param {{ model: ModelName, row: number }} wanted @returns {Promise<Candidate[]>} */
  async predict({ model, row }) {
    return (await languageModel(model)).predict(row);
  },

  /** @param {{ model: ModelName, off: HeadName[] }} wanted @returns {Promise<Effect>} */
  async effect({ model, off }) {
    return effectOf(await languageModel(model), off);
  },

  /** @param {{ model: ModelName }} wanted @returns {Promise<HeadScores>} */
  async scores({ model }) {
    return headScores(await languageModel(model));
  },

  ...lessonCalls({ attention, languageModel, sourceOf, runUntrained }),
};

self.addEventListener('message', async ({ data: { id, call, argument } }) => {
  /** @type {Report} */
  const report = (progress) => self.postMessage({ id, progress });
  try {
    const result = await calls[/** @type {keyof typeof calls} */ (call)](/** @type {never} */ (argument), report);
    self.postMessage({ id, result });
  } catch (error) {
    self.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
  }
});
