// What every part of the lesson shares: the reader's choices, and the worker's answers.
import { createContext } from 'preact';
import { useContext, useLayoutEffect, useRef, useState } from 'preact/hooks';

/** @import { Calls, Engine } from '../engine/client.js' */
/** @import { State, Store } from '../state.js' */
/** @import { Run } from '../types.js' */
/** @import { HeadSteps } from './engine/steps.js' */
/** @import { Record as Done } from './done.js' */
/** @import { Turns } from './turns.js' */

/**
 * @typedef {object} Lesson
 * @property {Store} store
 * @property {State} state
 * @property {Engine} engine
 * @property {Promise<unknown>} ready settled once the model is there
 * @property {HeadSteps | null} steps of the head in focus on the reader's text
 * @property {() => Run | null} run the one that the instrument shows
 */
/** @typedef {{ done: Done, seen: ReadonlySet<string> }} Visit how far the reader is */

/** What a section shows: it comes to the sections in turns. */
export const LessonContext = createContext(/** @type {Lesson} */ (/** @type {unknown} */ (null)));
export const useLesson = () => useContext(LessonContext);

/** What the reader has just done: it shows at once. */
export const VisitContext = createContext(/** @type {Visit} */ (/** @type {unknown} */ (null)));
export const useVisit = () => useContext(VisitContext);

export const TurnsContext = createContext(/** @type {Turns} */ (/** @type {unknown} */ (null)));

/** @type {ReadonlySet<keyof State>} */
const kPointing = new Set(['focus', 'locked']);
const kPause = 150; // ms

/**
 * The reader's choices. On a long text the lesson, whose pictures grow with it, doesn't follow each step of the pointer,
 * but what it rests on: the instrument must not wait for it.
 * @param {Store} store @param {() => boolean} isLong @returns {State}
 */
export function useStore(store, isLong) {
  const [state, setState] = useState(store.state);
  useLayoutEffect(() => {
    let timer = 0;
    setState(store.state); // it may have changed since it was drawn
    const stop = store.subscribe((now, changed) => {
      clearTimeout(timer);
      if (isLong() && [...changed].every((name) => kPointing.has(name))) {
        timer = window.setTimeout(() => setState(store.state), kPause);
      } else {
        setState(now);
      }
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [store]);
  return state;
}

let asking = 0;

/** Whether a part of the lesson waits for an answer. */
export const isAsking = () => asking > 0;

/**
 * The worker's answer to the latest question; while a later one is on its way, that to an earlier one. One is on its way
 * at a time, and those that nobody wants any more are left out.
 * @template {keyof Calls} Name
 * @param {Pick<Lesson, 'engine' | 'ready'>} lesson
 * @param {Name} call @param {Parameters<Calls[Name]>[0] | null} question null: none
 * @returns {Awaited<ReturnType<Calls[Name]>> | null}
 */
export function useAnswer({ engine, ready }, call, question) {
  const [answer, setAnswer] = useState(/** @type {any} */ (null));
  const line = useRef({ isBusy: false, wanted: /** @type {typeof question} */ (null) });
  useLayoutEffect(() => {
    line.current.wanted = question;
    if (line.current.isBusy || question === null) return;
    line.current.isBusy = true;
    asking++;
    askAll();
  }, [engine, call, JSON.stringify(question)]);

  async function askAll() {
    await ready;
    while (line.current.wanted !== null) {
      const { wanted } = line.current;
      try {
        setAnswer(await engine.ask(call, wanted));
      } catch {
        // The instrument, which asks for the same model, says what is wrong.
      }
      if (line.current.wanted === wanted) line.current.wanted = null;
    }
    // Together with the last look at what is wanted: a question may come before any callback of this promise.
    line.current.isBusy = false;
    asking--;
  }
  return answer;
}
