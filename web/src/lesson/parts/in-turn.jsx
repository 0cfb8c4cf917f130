import { useContext, useLayoutEffect, useState } from 'preact/hooks';
import { LessonContext, TurnsContext } from '../context.js';

/** @import { Lesson } from '../context.js' */

/** A part of the lesson that is drawn when it is its turn. @param {{ place: number, children: any }} props */
export function InTurn({ place, children }) {
  const turns = useContext(TurnsContext);
  const [lesson, setLesson] = useState(/** @type {Lesson | null} */ (null));
  useLayoutEffect(() => turns.join({ place, draw: setLesson }), [turns, place]);
  if (!lesson) return <div class="to-come" />;
  return <LessonContext.Provider value={lesson}>{children}</LessonContext.Provider>;
}
