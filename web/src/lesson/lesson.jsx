// The lesson: seven sections beside the instrument, each with numbers that the worker has computed.
import { render } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { byId } from '../views/element.js';
import { LessonContext, useAnswer, useStore } from './context.js';
import { storeAnswers, storedAnswers } from './done.js';
import { createFold } from './fold.js';
import { createFollower } from './follow.js';
import { kParts, Progress } from './progress.jsx';
import { Architecture } from './sections/architecture.jsx';
import { Checkpoint } from './sections/checkpoint.jsx';
import { Code } from './sections/code.jsx';
import { Finish } from './sections/finish.jsx';
import { Formulas } from './sections/formulas.jsx';
import { Intuition } from './sections/intuition.jsx';
import { Mechanism } from './sections/mechanism.jsx';

/** @import { Engine } from '../engine/client.js' */
/** @import { Store } from '../state.js' */
/** @import { Run } from '../types.js' */

/** @typedef {{ store: Store, engine: Engine, ready: Promise<unknown>, run: () => Run | null }} LessonOptions */

/** @param {LessonOptions} options */
export function showLesson(options) {
  createFold();
  const place = byId('lesson');
  byId('skip').addEventListener('click', () => place.focus());
  // Where no model comes up, the instrument says so; nobody answers the lesson then.
  const ready = options.ready.catch(() => new Promise(() => {}));
  render(<Lesson {...options} ready={ready} />, place);
}

/** Tokens of a text whose lesson follows every step of the pointer. */
const kShort = 256;

/** @param {LessonOptions} options */
function Lesson({ store, engine, ready, run }) {
  const state = useStore(store, () => (run()?.tokens.length ?? 0) > kShort);
  const done = useDone();
  const { current, seen, follower } = useSections(store);
  const { model, text, added, off, at, heads, causal, rope, seed } = state;
  const { mask, scale, temperature, rotary, softcap, window } = state;
  const change = { mask, scale, temperature, rotary, softcap, window };
  const layer = { heads, causal, rope, seed };
  const steps = useAnswer({ engine, ready }, 'steps', { model, text, added, off, change, at, layer });
  const shared = useMemo(() => ({ store, state, engine, ready, steps, done }), [state, steps, done]);
  return (
    <LessonContext.Provider value={shared}>
      <Progress current={current} seen={seen} isFollowing={follower.isFollowing} onBack={follower.back} />
      <p class="lede">
        Scaled dot-product and multi-head attention in seven short sections, about twenty minutes. A small trained
        language model reads your text as you type, and every number here is computed on your device as you look at it.
      </p>
      <Intuition />
      <Formulas />
      <Mechanism />
      <Architecture />
      <Code />
      <Checkpoint />
      <Finish seen={seen} run={run} />
    </LessonContext.Provider>
  );
}

/** What has been answered, at this visit and before. @returns {import('./done.js').Record} */
function useDone() {
  const [answered, setAnswered] = useState(storedAnswers);
  return useMemo(
    () => ({
      answered,
      answer(name) {
        setAnswered((before) => {
          const now = { ...before, [name]: /** @type {const} */ (true) };
          storeAnswers(now);
          return now;
        });
      },
      forget() {
        setAnswered({});
        storeAnswers({});
      },
    }),
    [answered],
  );
}

/** Where the reader is, and what the instrument does about it. @param {Store} store */
function useSections(store) {
  const [current, setCurrent] = useState(kParts[0].name);
  const [seen, setSeen] = useState(/** @type {ReadonlySet<string>} */ (new Set([kParts[0].name])));
  const [, setFollowing] = useState(true);
  const follower = useMemo(() => createFollower(store, setFollowing), [store]);
  useEffect(() => {
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { isIntersecting, target } of entries) {
          if (!isIntersecting) continue;
          const name = /** @type {HTMLElement} */ (target).dataset.section ?? kParts[0].name;
          setCurrent(name);
          setSeen((before) => new Set([...before, name]));
          follower.enter(name);
        }
      },
      { rootMargin: '-45% 0px -54% 0px' }, // the section on a line near the middle
    );
    for (const part of document.querySelectorAll('[data-section]')) observer.observe(part);
    return () => observer.disconnect();
  }, [follower]);
  return { current, seen, follower };
}
