// The lesson: seven sections beside the instrument, each with numbers that the worker has computed.
import { render } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useState } from 'preact/hooks';
import { byId } from '../views/element.js';
import { isAsking, TurnsContext, useAnswer, useStore, VisitContext } from './context.js';
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
import { createTurns } from './turns.js';

/** @import { Engine } from '../engine/client.js' */
/** @import { Store } from '../state.js' */
/** @import { Run } from '../types.js' */
/** @import { Turns } from './turns.js' */

/** @typedef {{ store: Store, engine: Engine, ready: Promise<unknown>, run: () => Run | null }} LessonOptions */

/** @param {LessonOptions} options */
export function showLesson(options) {
  createFold();
  const place = byId('lesson');
  byId('skip').addEventListener('click', () => place.focus());
  // Where no model comes up, the instrument says so; nobody answers the lesson then.
  const ready = options.ready.catch(() => new Promise(() => {}));
  const turns = createTurns();
  render(<Lesson {...options} ready={ready} turns={turns} />, place);
  return {
    /** Until it shows what the latest choices ask for. */
    async settled() {
      do await new Promise((resolve) => setTimeout(resolve));
      while (turns.isTaking || isAsking());
    },
  };
}

/** Tokens of a text whose lesson follows every step of the pointer. */
const kShort = 256;

/** @param {LessonOptions & { turns: Turns }} options */
function Lesson({ store, engine, ready, run, turns }) {
  const state = useStore(store, () => (run()?.tokens.length ?? 0) > kShort);
  const done = useDone();
  const { current, seen, follower } = useSections(store, turns);
  const { model, text, added, off, at, heads, causal, rope, seed } = state;
  const { mask, scale, temperature, rotary, softcap, window } = state;
  const change = { mask, scale, temperature, rotary, softcap, window };
  const layer = { heads, causal, rope, seed };
  const steps = useAnswer({ engine, ready }, 'steps', { model, text, added, off, change, at, layer });
  useLayoutEffect(() => turns.show({ store, state, engine, ready, steps, run }), [state, steps]);
  const visit = useMemo(() => ({ done, seen }), [done, seen]);
  return (
    <VisitContext.Provider value={visit}>
      <Progress current={current} seen={seen} isFollowing={follower.isFollowing} onBack={follower.back} />
      <p class="lede">
        Scaled dot-product and multi-head attention in seven short sections, about twenty minutes. A small trained
        language model reads your text as you type, and every number here is computed on your device as you look at it.
      </p>
      <TurnsContext.Provider value={turns}>{kSections}</TurnsContext.Provider>
    </VisitContext.Provider>
  );
}

/** The same elements each time: they are drawn anew in their turns alone. */
const kSections = [
  <Intuition key="intuition" />,
  <Formulas key="formulas" />,
  <Mechanism key="mechanism" />,
  <Architecture key="architecture" />,
  <Code key="code" />,
  <Checkpoint key="checkpoint" />,
  <Finish key="finish" />,
];

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

/** Where the reader is, and what the instrument does about it. @param {Store} store @param {Turns} turns */
function useSections(store, turns) {
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
          turns.moveTo(1 + kParts.findIndex((part) => part.name === name));
          setCurrent(name);
          setSeen((before) => new Set([...before, name]));
          follower.enter(name);
        }
      },
      { rootMargin: '-45% 0px -54% 0px' }, // the section on a line near the middle
    );
    for (const part of document.querySelectorAll('[data-section]')) observer.observe(part);
    return () => observer.disconnect();
  }, [follower, turns]);
  return { current, seen, follower };
}
