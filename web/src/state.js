// What the reader has chosen, in one object. The part that another person should see too lives in the address.

/** @import { HeadName } from './types.js' */
/**
 * @typedef {object} Settings
 * @property {'trained' | 'own' | 'untrained'} model
 * @property {string} text
 * @property {HeadName[]} off heads that are switched off, in order
 * @property {number} heads @property {boolean} causal @property {boolean} rope @property {number} seed of the untrained layer
 * @property {HeadName} at the head whose matrix is shown
 */
/** @typedef {{ row: number, column: number }} Cell */
/** @typedef {Settings & { focus: Cell, locked: boolean }} State `focus` is the cell that every view speaks of */

export const kHeadChoices = [1, 2, 4, 8];

/** @type {Readonly<Settings>} */
export const kDefaults = {
  model: 'trained',
  text: 'blue seven window candle river stone. blue seven window candle river',
  off: [],
  ...{ heads: 4, causal: false, rope: false, seed: 1 },
  at: [4, 2],
};

const kLongestText = 8000;

/** @param {HeadName} head */
export const headName = ([layer, head]) => `L${layer}·H${head}`;

/** @param {HeadName} a @param {HeadName} b */
export const sameHead = (a, b) => a[0] === b[0] && a[1] === b[1];

/** @param {string} text such as 4.2 @returns {HeadName[]} one, or none where it makes no sense */
function headsFrom(text) {
  const numbers = /^(\d{1,3})\.(\d{1,3})$/.exec(text);
  return numbers ? [[Number(numbers[1]), Number(numbers[2])]] : [];
}

/**
 * Settings from the fragment of an address; whatever is missing or makes no sense is the default.
 * @param {string} hash
 * @returns {Settings}
 */
export function settingsFromHash(hash) {
  const params = new URLSearchParams(hash.replace(/^#/, ''));
  const heads = Number(params.get('heads'));
  const seed = Number(params.get('seed') ?? kDefaults.seed);
  const model = params.get('model') === 'untrained' ? 'untrained' : 'trained';
  return {
    model,
    text: (params.get('text') ?? kDefaults.text).slice(0, kLongestText),
    off: orderedHeads((params.get('off') ?? '').split(',').flatMap(headsFrom)),
    heads: kHeadChoices.includes(heads) ? heads : kDefaults.heads,
    causal: params.get('causal') === '1',
    rope: params.get('rope') === '1',
    seed: Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31 ? seed : kDefaults.seed,
    at: headsFrom(params.get('head') ?? '')[0] ?? kDefaults.at,
  };
}

/** In order, each once. @param {readonly HeadName[]} heads @returns {HeadName[]} */
export function orderedHeads(heads) {
  const sorted = [...heads].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return sorted.filter((head, i) => i === 0 || !sameHead(head, sorted[i - 1]));
}

/** @param {Settings} settings @returns {string} the fragment; empty for the defaults */
export function hashFromSettings(settings) {
  const params = new URLSearchParams();
  const dotted = (/** @type {HeadName} */ head) => head.join('.');
  // The reader's own model isn't anyone else's: the address speaks of the others only.
  if (settings.model === 'untrained') params.set('model', settings.model);
  if (settings.text !== kDefaults.text) params.set('text', settings.text);
  if (!sameHead(settings.at, kDefaults.at)) params.set('head', dotted(settings.at));
  if (settings.off.length > 0) params.set('off', settings.off.map(dotted).join(','));
  if (settings.heads !== kDefaults.heads) params.set('heads', String(settings.heads));
  if (settings.causal) params.set('causal', '1');
  if (settings.rope) params.set('rope', '1');
  if (settings.seed !== kDefaults.seed) params.set('seed', String(settings.seed));
  const text = params.toString();
  return text ? `#${text}` : '';
}

/**
 * @template {object} T
 * @param {T} initial
 */
export function createStore(initial) {
  let state = initial;
  /** @type {((state: T, changed: Set<keyof T>) => void)[]} */
  const listeners = [];
  return {
    get state() {
      return state;
    },
    /** @param {(state: T, changed: Set<keyof T>) => void} listener */
    subscribe(listener) {
      listeners.push(listener);
    },
    /** Tells the listeners which members have another value now, if any. @param {Partial<T>} patch */
    set(patch) {
      const names = /** @type {(keyof T)[]} */ (Object.keys(patch));
      const changed = new Set(names.filter((name) => !Object.is(patch[name], state[name])));
      if (changed.size === 0) return;
      state = { ...state, ...patch };
      for (const listener of listeners) listener(state, changed);
    },
  };
}

/** @typedef {ReturnType<typeof createStore<State>>} Store */
