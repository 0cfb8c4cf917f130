// Where everything is computed: the page asks by messages, so that it never waits for a kernel.
import { buffersToMove, lessonCalls } from '../lesson/engine/calls.js';
import { kernelsOn, languageModel, leaveGpu, openOwn, originOf } from './kernels.js';
import { matrixOf, thumbnailsOf } from './matrix.js';
import { effectOf, headScores } from './measure.js';
import { kAsTrained } from './rules.js';

/** @import { BackendName, BuildInfo, Candidate, Effect, HeadName, HeadScores, LensLayer, Matrix, MatrixView, ModelInfo, Progress, Run, Thumbnails } from '../types.js' */
/** @import { ModelName } from './kernels.js' */
/** @import { Wanted } from './language-model.js' */
/** @import { Source } from './matrix.js' */
/** @import { LayerSettings } from './untrained.js' */
/** @import { WritingSettings } from './writing.js' */

/** What is asked of a model, on one of the backends. @typedef {{ model: ModelName, backend: BackendName }} Where */

/** @param {Where} where @returns {Promise<{ source: Source, before: Source } | null>} */
async function sourcesOf({ model, backend }) {
  if (model !== 'untrained') return (await languageModel(model, backend)).sources;
  return kernelsOn(backend).untrained?.sources ?? null;
}

/** @typedef {(progress: Progress) => void} Report */

/** What the page may ask for: each takes an argument, and a function to tell how far it has come. */
export const calls = {
  /** @returns {Promise<BuildInfo>} */
  async build() {
    return kernelsOn('wasm').info();
  },

  /** @param {undefined} _ @param {Report} report @returns {Promise<ModelInfo>} */
  async loadTrained(_, report) {
    return (await languageModel('trained', 'wasm', report)).info;
  },

  /** @param {File[]} files @param {Report} report @returns {Promise<ModelInfo>} */
  async loadOwn(files, report) {
    // What can't be run is refused here.
    const probe = { text: 'a', added: [], off: [], change: kAsTrained };
    return (await openOwn(files, report, (model) => model.run(probe))).info;
  },

  /** Lets go of the GPU after an error of it. */
  async leaveGpu() {
    await leaveGpu();
  },

  /** @param {Wanted & Where & { layer: LayerSettings }} wanted @param {Report} report @returns {Promise<Run>} */
  async run({ model, backend, layer, ...wanted }, report) {
    const kernels = kernelsOn(backend);
    if (model === 'untrained') {
      const run = await (await kernels.layer()).run(wanted.text, layer);
      return { ...run, build: await kernels.info() };
    }
    const language = await languageModel(model, backend, report);
    await language.stopWriting();
    return { ...(await language.run(wanted)), build: await kernels.info() };
  },

  /** Of the last run. @param {Where & { view: MatrixView }} wanted @returns {Promise<Matrix | null>} */
  async matrix({ view, ...where }) {
    const sources = await sourcesOf(where);
    return sources && sources.source.T > view.from ? matrixOf(view, sources.source, sources.before) : null;
  },

  /**
   * Of one layer of the last run.
   * @param {Where & { layer: number, side: number, hideFirst: boolean }} wanted
   * @returns {Promise<Thumbnails | null>}
   */
  async thumbnails({ layer, side, hideFirst, ...where }) {
    const sources = await sourcesOf(where);
    return sources && sources.source.T > 0 ? thumbnailsOf(sources.source, layer, side, hideFirst) : null;
  },

  /** @param {Where & { row: number }} wanted @returns {Promise<Candidate[]>} */
  async predict({ model, backend, row }) {
    return (await languageModel(model, backend)).predict(row);
  },

  /** @param {Where & { row: number }} wanted @returns {Promise<LensLayer[]>} */
  async lens({ model, backend, row }) {
    return (await languageModel(model, backend)).lens(row);
  },

  /** @param {Wanted & Where & { settings: WritingSettings }} wanted */
  async startWriting({ model, backend, ...wanted }) {
    return (await languageModel(model, backend)).startWriting(wanted);
  },

  /** @param {Where} wanted */
  async writeNext({ model, backend }) {
    const step = await (await languageModel(model, backend)).writeNext();
    return step && { ...step, run: { ...step.run, build: await kernelsOn(backend).info() } };
  },

  /** Averages are measured on wasm, wherever the page computes. @param {{ model: ModelName, off: HeadName[] }} wanted @returns {Promise<Effect>} */
  async effect({ model, off }) {
    return effectOf(await languageModel(model), off);
  },

  /** @param {{ model: ModelName }} wanted @returns {Promise<HeadScores>} */
  async scores({ model }) {
    return headScores(await languageModel(model));
  },

  ...lessonCalls({ attention: kernelsOn('wasm').attention, languageModel, originOf }),
};

self.addEventListener('message', async ({ data: { id, call, argument } }) => {
  /** @type {Report} */
  const report = (progress) => self.postMessage({ id, progress });
  try {
    const result = await calls[/** @type {keyof typeof calls} */ (call)](/** @type {never} */ (argument), report);
    self.postMessage({ id, result }, { transfer: buffersToMove(result) });
  } catch (error) {
    self.postMessage({ id, error: reasonOf(error) });
  }
});

/** An error as the page tells it: where there is no GPU, why. @param {unknown} error */
function reasonOf(error) {
  const { code = '', message = String(error), cause } = /** @type {any} */ (error ?? {});
  return { code, message: code === 'UNSUPPORTED' && cause instanceof Error ? cause.message : message };
}
