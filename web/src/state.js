// What the reader has chosen, in one object. The part that another person should see too lives in the address.
import { kAsTrained } from './engine/rules.js';

/** @import { WritingSettings } from './engine/writing.js' */
/** @import { BackendName, HeadName, WhatIf } from './types.js' */
/**
 * @typedef {object} Choices
 * @property {'trained' | 'own' | 'untrained'} model
 * @property {BackendName} backend what computes
 * @property {string} text
 * @property {number[]} added ids of tokens behind the text: what the model has written
 * @property {HeadName[]} off heads that are switched off, in order
 * @property {number} heads @property {boolean} causal @property {boolean} rope @property {number} seed of the untrained layer
 * @property {HeadName} at the head whose matrix is shown
 * @property {'one' | 'mean' | 'max' | 'rollout'} combine whether that head alone is shown, or several as one
 * @property {HeadName[]} chosen the heads that are combined; none: all
 * @property {'weights' | 'scores' | 'change'} show
 * @property {'unit' | 'row'} range of the colours: 0 to 1, or to the largest weight of each row
 * @property {boolean} hideFirst leaves out the first token, on which idle heads rest
 * @property {number} mass shows the fewest weights of a row that reach this share together
 * @property {number} arcs how many of the row in focus are drawn over the tokens
 * @property {number[]} rows whose weights are added up @property {'sum' | 'mean'} add
 * @property {boolean} newOnly shows rows of `added` alone
 * @property {[row: number, column: number, span: number] | null} zoom the part of the matrix that is shown
 * @property {boolean} lens whether the logit lens is open
 * @property {WritingSettings} writing
 */
/** @typedef {Choices & WhatIf} Settings */
/** @typedef {{ row: number, column: number }} Cell */
/**
 * `focus` is the cell that every view speaks of; `peek` the head that is looked at in passing, which the address keeps out.
 * @typedef {Settings & { focus: Cell, locked: boolean, peek: HeadName | null }} State
 */

export const kHeadChoices = [1, 2, 4, 8];

/** @type {Readonly<Settings>} */
export const kDefaults = {
  ...{ model: 'trained', backend: 'wasm' },
  text: 'blue seven window candle river stone. blue seven window candle river',
  ...{ added: [], off: [] },
  ...{ heads: 4, causal: false, rope: false, seed: 1 },
  ...{ at: [4, 2], combine: 'one', chosen: [], show: 'weights', range: 'unit', hideFirst: false, mass: 1, arcs: 5 },
  ...{ rows: [], add: 'sum', newOnly: false, zoom: null, lens: false },
  writing: { count: 24, temperature: 0.8, topK: 0, topP: 0.95, seed: 1, stop: false },
  ...kAsTrained,
};

const kLongestText = 20000;
const kMostAdded = 512;

/** @param {HeadName} head */
export const headName = ([layer, head]) => `L${layer}·H${head}`;

/** @param {HeadName} a @param {HeadName} b */
export const sameHead = (a, b) => a[0] === b[0] && a[1] === b[1];

/** In order, each once. @param {readonly HeadName[]} heads @returns {HeadName[]} */
export function orderedHeads(heads) {
  const sorted = [...heads].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return sorted.filter((head, i) => i === 0 || !sameHead(head, sorted[i - 1]));
}

/** All heads of a model. @param {{ layers: number, heads: number }} sizes @returns {HeadName[]} */
export const allHeads = ({ layers, heads }) =>
  Array.from({ length: layers * heads }, (_, i) => [Math.floor(i / heads), i % heads]);

/** @param {string} text such as 4.2 @returns {HeadName[]} one, or none where it makes no sense */
function headsFrom(text) {
  const numbers = /^(\d{1,3})\.(\d{1,3})$/.exec(text);
  return numbers ? [[Number(numbers[1]), Number(numbers[2])]] : [];
}

/** How a setting is written. @template T @typedef {{ key: string, write: (value: T) => string, read: (text: string) => T | undefined }} Form */

/** @param {string} key @returns {Form<boolean>} */
const flag = (key) => ({
  key,
  write: (value) => (value ? '1' : '0'),
  read: (text) => (text === '1' ? true : text === '0' ? false : undefined),
});

/** @param {string} key @param {number} least @param {number} most @param {boolean} [isWhole] @returns {Form<number>} */
const number = (key, least, most, isWhole = true) => ({
  key,
  write: String,
  read(text) {
    const value = Number(text);
    return text !== '' && value >= least && value <= most && (!isWhole || Number.isInteger(value)) ? value : undefined;
  },
});

/** @template {string} T @param {string} key @param {readonly T[]} names @returns {Form<T>} */
const oneOf = (key, names) => ({ key, write: String, read: (text) => names.find((name) => name === text) });

/** @param {string} key @returns {Form<HeadName[]>} */
const heads = (key) => ({
  key,
  write: (list) => list.map((head) => head.join('.')).join(','),
  read: (text) => orderedHeads(text.split(',').flatMap(headsFrom)),
});

/** @param {string} key @param {string} separator @returns {Form<number[]>} */
const integers = (key, separator) => ({
  key,
  write: (list) => list.join(separator),
  read(text) {
    const list = text.split(separator).map((part) => (/^\d{1,7}$/.test(part) ? Number(part) : -1));
    return list.includes(-1) || list.length > kMostAdded ? undefined : list;
  },
});

/** @type {Form<WritingSettings>} */
const kWriting = {
  key: 'write',
  write: ({ count, temperature, topK, topP, seed, stop }) =>
    [count, temperature, topK, topP, seed, stop ? 1 : 0].join(','),
  read(text) {
    const [count, temperature, topK, topP, seed, stop, ...more] = text.split(',').map(Number);
    const isWhole = [count, topK, seed, stop].every(Number.isInteger) && more.length === 0;
    const isInRange = count >= 1 && count <= kMostAdded && topK >= 0 && seed >= 0 && seed < 2 ** 32;
    if (!isWhole || !isInRange || !(temperature >= 0 && temperature <= 10 && topP > 0 && topP <= 1)) return undefined;
    return { count, temperature, topK, topP, seed, stop: stop === 1 };
  },
};

/** @type {Form<Settings['zoom']>} */
const kZoom = {
  key: 'zoom',
  write: (zoom) => (zoom ?? []).join(','),
  read(text) {
    const list = integers('', ',').read(text) ?? [];
    return list.length === 3 && list[2] > 0 ? /** @type {[number, number, number]} */ (list) : undefined;
  },
};

/** @type {{ [Name in keyof Settings]: Form<Settings[Name]> }} in the order of the address */
const kForms = {
  // The reader's own model isn't anyone else's: the address speaks of the others only.
  model: {
    key: 'model',
    write: (name) => (name === 'own' ? '' : name),
    read: oneOf('', ['trained', 'untrained']).read,
  },
  backend: oneOf('backend', ['wasm', 'webgpu']),
  text: { key: 'text', write: String, read: (text) => text.slice(0, kLongestText) },
  added: integers('added', '.'),
  at: { key: 'head', write: (head) => head.join('.'), read: (text) => headsFrom(text)[0] },
  off: heads('off'),
  heads: { ...number('heads', 1, 8), read: (text) => kHeadChoices.find((count) => String(count) === text) },
  causal: flag('causal'),
  rope: flag('rope'),
  seed: number('seed', 0, 2 ** 31 - 1),
  combine: oneOf('view', ['one', 'mean', 'max', 'rollout']),
  chosen: heads('of'),
  show: oneOf('show', ['weights', 'scores', 'change']),
  range: oneOf('range', ['unit', 'row']),
  hideFirst: { key: 'first', write: (isHidden) => (isHidden ? '0' : '1'), read: (text) => text === '0' },
  mass: number('mass', 0.05, 1, false),
  arcs: number('arcs', 0, 20),
  rows: integers('rows', ','),
  add: oneOf('add', ['sum', 'mean']),
  newOnly: flag('new'),
  zoom: kZoom,
  lens: flag('lens'),
  mask: flag('mask'),
  scale: number('scale', 0, 64, false),
  temperature: number('temp', 0.01, 100, false),
  rotary: flag('rotary'),
  softcap: number('cap', 0, 1000, false),
  window: number('window', 0, 2 ** 20),
  writing: kWriting,
};

/** The settings, in the order of the address. */
export const kSettings = /** @type {(keyof Settings)[]} */ (Object.keys(kForms));

/**
 * What an address says; whatever is missing or makes no sense is the default.
 * @param {string} hash
 * @returns {Settings & Partial<Pick<State, 'focus' | 'locked'>>} with the cell, where one is locked
 */
export function settingsFromHash(hash) {
  const params = new URLSearchParams(hash.replace(/^#/, ''));
  const entries = kSettings.map((name) => {
    const { key, read } = kForms[name];
    const text = params.get(key);
    return [name, (text === null ? undefined : read(text)) ?? kDefaults[name]];
  });
  const cell = headsFrom((params.get('cell') ?? '').slice(0, 9))[0];
  const locked = cell ? { focus: { row: cell[0], column: cell[1] }, locked: true } : {};
  return { ...Object.fromEntries(entries), ...locked };
}

/** @param {Settings & Partial<State>} state @returns {string} the fragment; empty for the defaults */
export function hashFromSettings(state) {
  const params = new URLSearchParams();
  for (const name of kSettings) {
    const { key, write } = /** @type {Form<any>} */ (kForms[name]);
    const text = write(state[name]);
    if (text !== write(kDefaults[name]) && !(name === 'model' && text === '')) params.set(key, text);
  }
  if (state.locked && state.focus) params.set('cell', `${state.focus.row}.${state.focus.column}`);
  const text = params.toString();
  return text ? `#${text}` : '';
}

/**
 * @template {object} T
 * @param {T} initial
 */
export function createStore(initial) {
  let state = initial;
  /** @type {Set<(state: T, changed: Set<keyof T>) => void>} */
  const listeners = new Set();
  return {
    get state() {
      return state;
    },
    /** @param {(state: T, changed: Set<keyof T>) => void} listener @returns {() => void} ends it */
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    /** Tells the listeners which members have another value now, if any. @param {Partial<T>} patch */
    set(patch) {
      const names = /** @type {(keyof T)[]} */ (Object.keys(patch));
      const changed = new Set(names.filter((name) => !Object.is(patch[name], state[name])));
      if (changed.size === 0) return;
      state = { ...state, ...patch };
      for (const listener of [...listeners]) listener(state, changed);
    },
  };
}

/** @typedef {ReturnType<typeof createStore<State>>} Store */
