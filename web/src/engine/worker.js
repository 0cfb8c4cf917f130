// Where everything is computed: the page asks by messages, so that it never waits for a kernel.
import { load } from 'attention-wasm';
import { buffersToMove, lessonCalls } from '../lesson/engine/calls.js';
import { ownFiles, shippedFiles } from './files.js';
import { LanguageModel } from './language-model.js';
import { matrixOf, thumbnailsOf } from './matrix.js';
import { effectOf, headScores } from './measure.js';
import { kAsTrained } from './rules.js';
import { createUntrained } from './untrained.js';

/** @import { BuildInfo, Candidate, Effect, HeadName, HeadScores, LensLayer, Matrix, MatrixView, ModelInfo, Progress, Run, Thumbnails } from '../types.js' */
/** @import { Origin } from '../lesson/engine/steps.js' */
/** @import { Wanted } from './language-model.js' */
/** @import { Source } from './matrix.js' */
/** @import { LayerSettings } from './untrained.js' */
/** @import { WritingSettings } from './writing.js' */

/** @typedef {'trained' | 'own' | 'untrained'} ModelName */

/** @type {Promise<Awaited<ReturnType<typeof load>>>} */
const attention = load();
/** @type {{ trained?: Promise<LanguageModel>, own?: Promise<LanguageModel> }} */
const models = {};
/** @type {ReturnType<typeof createUntrained> | null} */
let untrained = null;
/** Of a model of the reader's own the files are not kept: they may be large. @type {Partial<Record<ModelName, Origin>>} */
const origins = {};
/** @param {(progress: Progress) => void} report */
const trained = (report) => {
  models.trained ??= Promise.all([attention, shippedFiles(report)]).then(([kernels, files]) => {
    origins.trained = { config: files.config, weights: files.weights[0] };
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

/** @param {ModelName} name @returns {Promise<{ source: Source, before: Source } | null>} */
async function sourcesOf(name) {
  return name === 'untrained' ? (untrained?.sources ?? null) : (await languageModel(name)).sources;
}

/** @param {ModelName} name @returns {Origin} */
function originOf(name) {
  const origin = origins[name];
  if (!origin) throw new Error('no such model is loaded');
  return origin;
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
      model.run({ text: 'a', added: [], off: [], change: kAsTrained }); // what can't be run is refused here
    } catch (error) {
      model.dispose();
      throw error;
    }
    const former = models.own;
    models.own = Promise.resolve(model);
    origins.own = { config: made.config, weights: null };
    (await former)?.dispose();
    return model.info;
  },

  /** @param {Wanted & { model: ModelName, layer: LayerSettings }} wanted @returns {Promise<Run>} */
  async run({ model, layer, ...wanted }) {
    if (model !== 'untrained') {
      const language = await languageModel(model);
      await language.stopWriting();
      return language.run(wanted);
    }
    untrained ??= createUntrained(await attention);
    return untrained.run(wanted.text, layer);
  },

  /** Of the last run. @param {{ model: ModelName, view: MatrixView }} wanted @returns {Promise<Matrix | null>} */
  async matrix({ model, view }) {
    const sources = await sourcesOf(model);
    return sources && sources.source.T > view.from ? matrixOf(view, sources.source, sources.before) : null;
  },

  /**
   * Of one layer of the last run.
   * @param {{ model: ModelName, layer: number, side: number, hideFirst: boolean }} wanted
   * @returns {Promise<Thumbnails | null>}
   */
  async thumbnails({ model, layer, side, hideFirst }) {
    const sources = await sourcesOf(model);
    return sources && sources.source.T > 0 ? thumbnailsOf(sources.source, layer, side, hideFirst) : null;
  },

  /** @param {{ model: ModelName, row: number }} wanted @returns {Promise<Candidate[]>} */
  async predict({ model, row }) {
    return (await languageModel(model)).predict(row);
  },

  /** @param {{ model: ModelName, row: number }} wanted @returns {Promise<LensLayer[]>} */
  async lens({ model, row }) {
    return (await languageModel(model)).lens(row);
  },

  /** @param {Wanted & { model: ModelName, settings: WritingSettings }} wanted */
  async startWriting({ model, ...wanted }) {
    return (await languageModel(model)).startWriting(wanted);
  },

  /** @param {{ model: ModelName }} wanted */
  async writeNext({ model }) {
    return (await languageModel(model)).writeNext();
  },

  /** @param {{ model: ModelName, off: HeadName[] }} wanted @returns {Promise<Effect>} */
  async effect({ model, off }) {
    return effectOf(await languageModel(model), off);
  },

  /** @param {{ model: ModelName }} wanted @returns {Promise<HeadScores>} */
  async scores({ model }) {
    return headScores(await languageModel(model));
  },

  ...lessonCalls({ attention, languageModel, originOf }),
};

self.addEventListener('message', async ({ data: { id, call, argument } }) => {
  /** @type {Report} */
  const report = (progress) => self.postMessage({ id, progress });
  try {
    const result = await calls[/** @type {keyof typeof calls} */ (call)](/** @type {never} */ (argument), report);
    self.postMessage({ id, result }, { transfer: buffersToMove(result) });
  } catch (error) {
    self.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
  }
});
