// A section that is scrolled to sets the instrument; the reader may take over, and go back.

import { kDefaults } from '../state.js';

/** @import { Settings, State, Store } from '../state.js' */

/** One head of the trained model, as it was trained. */
const kAsItIs = /** @type {const} */ ({ model: 'trained', combine: 'one', show: 'weights', mask: true, rotary: true });

/** Of each section that has one, the view of the instrument that helps. @type {Readonly<Record<string, Partial<State>>>} */
const kViews = {
  intuition: { ...kAsItIs, at: [4, 2] },
  formulas: { ...kAsItIs, at: [2, 3] },
  mechanism: { ...kAsItIs, at: [4, 2] },
};

/** Choices that are the instrument's view; a text or a cell isn't. @type {readonly (keyof Settings)[]} */
const kOwn = [
  'model',
  'at',
  'causal',
  'rope',
  'heads',
  'off',
  'combine',
  'show',
  'mask',
  'rotary',
  'scale',
  'temperature',
];

/**
 * @param {Store} store @param {(isFollowing: boolean) => void} changed
 */
export function createFollower(store, changed) {
  // An address that has a view of its own is the reader's choice.
  let isFollowing = kOwn.every((each) => JSON.stringify(store.state[each]) === JSON.stringify(kDefaults[each]));
  let isOurs = false;
  let name = 'intuition';

  store.subscribe((_, what) => {
    if (isOurs || !isFollowing || !kOwn.some((each) => what.has(each))) return;
    isFollowing = false;
    changed(false);
  });

  function apply() {
    isOurs = true;
    if (kViews[name]) store.set(kViews[name]);
    isOurs = false;
  }

  return {
    get isFollowing() {
      return isFollowing;
    },
    /** @param {string} section that the reader has come to */
    enter(section) {
      if (section === name) return;
      name = section;
      if (isFollowing) apply();
    },
    back() {
      isFollowing = true;
      changed(true);
      apply();
    },
  };
}
