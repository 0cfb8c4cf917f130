// The lesson is drawn part by part, each in a task of its own and those near the reader first: all at once they, and the
// layout that follows, would hold the page up.

/** @typedef {import('./context.js').Lesson} Lesson */
/** @typedef {{ place: number, draw: (lesson: Lesson) => void }} Part `place`: the number of its section */

export function createTurns() {
  /** @type {Set<Part>} */
  const parts = new Set();
  /** @type {Set<Part>} */
  const waiting = new Set();
  /** @type {Lesson | null} */
  let latest = null;
  let near = 1;
  let isTaking = false;

  function take() {
    const [part] = [...waiting].sort((a, b) => Math.abs(a.place - near) - Math.abs(b.place - near));
    if (latest === null || !part) {
      isTaking = false;
      return;
    }
    waiting.delete(part);
    part.draw(latest);
    // What the reader sees doesn't wait; of the rest each frame lays out one part.
    if (part.place === near || document.hidden) setTimeout(take);
    else requestAnimationFrame(() => setTimeout(take));
  }

  /** @param {Iterable<Part>} some */
  function wait(some) {
    for (const part of some) waiting.add(part);
    if (isTaking) return;
    isTaking = true;
    setTimeout(take);
  }

  return {
    /** Until it is told to draw for the first time, a part shows nothing. @param {Part} part @returns {() => void} ends it */
    join(part) {
      parts.add(part);
      wait([part]);
      return () => {
        parts.delete(part);
        waiting.delete(part);
      };
    },
    /** @param {Lesson} lesson what the parts are to show; those that still wait don't show what came before it */
    show(lesson) {
      latest = lesson;
      wait(parts);
    },
    /** @param {number} place where the reader is */
    moveTo(place) {
      near = place;
    },
    get isTaking() {
      return isTaking;
    },
  };
}

/** @typedef {ReturnType<typeof createTurns>} Turns */
