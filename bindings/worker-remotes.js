// The objects in a worker that a page holds, by their numbers there, with what is known of each.
import { isHandle, mapParts } from './worker-messages.js';

/** @import { Remote } from './worker-calls.js' */

export class Remotes {
  /** @type {Map<number, WeakRef<{ remote: Remote }>>} */
  #objects = new Map();
  /** States of objects that the page has none for yet. @type {Map<number, any>} */
  #fresh = new Map();
  #forgotten;

  /** @param {(remote: Remote) => void} forget called for objects that nobody reaches any more */
  constructor(forget) {
    this.#forgotten = new FinalizationRegistry(forget);
  }

  /** @param {number} handle */
  has(handle) {
    return this.#objects.has(handle);
  }

  /** @param {number} handle */
  delete(handle) {
    this.#objects.delete(handle);
  }

  /** After the end of the worker. */
  clear() {
    this.#objects.clear();
    this.#fresh.clear();
  }

  /** @param {number} handle @param {any} state */
  learn(handle, state) {
    const known = this.#objects.get(handle)?.deref();
    if (known) known.remote.state = state;
    else this.#fresh.set(handle, state);
  }

  /**
   * The object that stands for a number: the one that there is, or a new one.
   * @param {number} handle @param {number} generation @param {(remote: Remote) => { remote: Remote }} make
   */
  objectOf(handle, generation, make) {
    const known = this.#objects.get(handle)?.deref();
    if (known) return known;
    const object = make({ handle, generation, state: this.#fresh.get(handle) });
    this.#fresh.delete(handle);
    this.#objects.set(handle, new WeakRef(object));
    this.#forgotten.register(object, object.remote);
    return object;
  }

  /** Numbers in a result that no object will stand for. @param {unknown} result @returns {number[]} */
  strangersIn(result) {
    /** @type {number[]} */
    const strangers = [];
    mapParts(result, (part) => {
      if (isHandle(part) && !this.#objects.has(part.attentionHandle)) strangers.push(part.attentionHandle);
      return undefined;
    });
    for (const handle of strangers) this.#fresh.delete(handle);
    return strangers;
  }
}
