// What computes: an instance on wasm, there from the start, and one on the GPU, once it is chosen; and the models on each.
import { load } from 'attention-wasm';
import { ownFiles, shippedFiles } from './files.js';
import { LanguageModel } from './language-model.js';
import { createUntrained } from './untrained.js';

/** @import { Attention } from 'attention-wasm' */
/** @import { Origin } from '../lesson/engine/steps.js' */
/** @import { BackendName, BuildInfo, Progress } from '../types.js' */
/** @import { ModelFiles } from './files.js' */

/** @typedef {'trained' | 'own' | 'untrained'} ModelName */
/** @typedef {(progress: Progress) => void} Report */

const quietly = () => {};

/** One instance, and what is in its memory. What it gives is waited for: on the GPU it is promises. */
class Kernels {
  /** @type {Promise<Attention>} */
  attention;
  /** @type {Partial<Record<'trained' | 'own', Promise<LanguageModel>>>} */
  #models = {};
  /** @type {ReturnType<typeof createUntrained> | null} */
  untrained = null;

  /** @param {BackendName} backend */
  constructor(backend) {
    this.attention = /** @type {Promise<any>} */ (load({ backend }));
  }

  /** @param {'trained' | 'own'} name @param {() => Promise<ModelFiles>} files @param {Report} report */
  model(name, files, report) {
    this.#models[name] ??= Promise.all([this.attention, files()]).then(([attention, made]) =>
      LanguageModel.load(attention, made, report),
    );
    return this.#models[name];
  }

  /** @param {'trained' | 'own'} name @param {LanguageModel | null} model takes the place of the one before */
  async put(name, model) {
    const former = this.#models[name];
    this.#models[name] = model ? Promise.resolve(model) : undefined;
    (await former)?.dispose();
  }

  async layer() {
    this.untrained ??= createUntrained(await this.attention);
    return this.untrained;
  }

  /** @returns {Promise<BuildInfo>} */
  async info() {
    const attention = await this.attention;
    return { ...attention.info, bytes: attention.memory.allocated };
  }
}

const wasm = new Kernels('wasm');
/** @type {Kernels | null} */
let gpu = null;

/** Of the reader's own model the bytes are not kept, because they may be many. @type {readonly File[]} */
let chosen = [];
/** @type {Promise<ModelFiles> | null} */
let shipped = null;

/** @param {BackendName} backend */
export function kernelsOn(backend) {
  if (backend === 'wasm') return wasm;
  gpu ??= new Kernels('webgpu');
  return gpu;
}

/** Lets go of the GPU, so that the next choice of it begins anew. */
export async function leaveGpu() {
  const former = gpu;
  gpu = null;
  await former?.attention.then((attention) => attention.dispose()).catch(quietly);
}

/** @param {ModelName} name @param {BackendName} [backend] @param {Report} [report] @returns {Promise<LanguageModel>} */
export async function languageModel(name, backend = 'wasm', report = quietly) {
  if (name === 'own') {
    if (chosen.length === 0) throw new Error('no model of your own is loaded');
    return kernelsOn(backend).model('own', () => ownFiles(chosen, report), report);
  }
  shipped ??= shippedFiles(report).then((files) => {
    origins.trained = { config: files.config, weights: files.weights[0] };
    return files;
  });
  const files = shipped;
  return kernelsOn(backend).model('trained', () => files, report);
}

/** The model before stays until this one works. @param {readonly File[]} files @param {Report} report @param {(model: LanguageModel) => Promise<unknown>} probe */
export async function openOwn(files, report, probe) {
  const made = await ownFiles(files, report);
  const model = await LanguageModel.load(await wasm.attention, made, report);
  try {
    await probe(model);
  } catch (error) {
    model.dispose();
    throw error;
  }
  chosen = files;
  origins.own = { config: made.config, weights: null };
  await Promise.all([wasm.put('own', model), gpu?.put('own', null).catch(quietly)]);
  return model;
}

/** @type {Partial<Record<ModelName, Origin>>} */
const origins = {};

/** @param {ModelName} name @returns {Origin} */
export function originOf(name) {
  const origin = origins[name];
  if (!origin) throw new Error('no such model is loaded');
  return origin;
}
