// What the reader has chosen, in one object. The part that another person should see too lives in the address.

/**
 * @typedef {object} Settings
 * @property {string} text
 * @property {number} heads
 * @property {boolean} causal
 * @property {boolean} rope
 * @property {number} seed
 */
/** @typedef {{ head: number, row: number, column: number }} Cell */
/** @typedef {Settings & { focus: Cell, locked: boolean }} State `focus` is the cell that every view speaks of */

export const kHeadChoices = [1, 2, 4, 8];

/** @type {Readonly<Settings>} */
export const kDefaults = {
  text: 'The cat saw the dog, and the dog saw the cat.',
  heads: 4,
  causal: false,
  rope: false,
  seed: 1,
};

const kLongestText = 8000;

/**
 * Settings from the fragment of an address; whatever is missing or makes no sense is the default.
 * @param {string} hash
 * @returns {Settings}
 */
export function settingsFromHash(hash) {
  const params = new URLSearchParams(hash.replace(/^#/, ''));
  const heads = Number(params.get('heads'));
  const seed = Number(params.get('seed') ?? kDefaults.seed);
  return {
    text: (params.get('text') ?? kDefaults.text).slice(0, kLongestText),
    heads: kHeadChoices.includes(heads) ? heads : kDefaults.heads,
    causal: params.get('causal') === '1',
    rope: params.get('rope') === '1',
    seed: Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31 ? seed : kDefaults.seed,
  };
}

/** @param {Settings} settings @returns {string} the fragment; empty for the defaults */
export function hashFromSettings(settings) {
  const params = new URLSearchParams();
  if (settings.text !== kDefaults.text) params.set('text', settings.text);
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
