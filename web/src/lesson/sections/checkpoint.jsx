// 6. Questions.
import { useMemo } from 'preact/hooks';
import { CostMeasurement } from '../checkpoint/cost.jsx';
import { QuestionCard } from '../checkpoint/question.jsx';
import {
  cacheQuestion,
  costQuestion,
  heaviestQuestion,
  kQuestionNames,
  maskQuestion,
  saturationQuestion,
  shiftQuestion,
} from '../checkpoint/questions.jsx';
import { useAnswer, useLesson, useVisit } from '../context.js';
import { rowOf } from '../numbers.js';
import { InTurn } from '../parts/in-turn.jsx';
import { Section } from '../parts/section.jsx';
import { cellOf } from '../parts/token-picker.jsx';

/** @import { HeadSteps } from '../engine/steps.js' */

const kShift = 50;

export function Checkpoint() {
  return (
    <Section number={6} name="checkpoint" title="Checkpoint">
      <p>
        Guess first, then look: an answer is judged at once. Some questions are made from your own sentence, and the
        kernel decides.
      </p>
      <Score />
      <QuestionCard number={1} question={costQuestion}>
        <CostMeasurement />
      </QuestionCard>
      <InTurn place={6}>
        <Others />
      </InTurn>
    </Section>
  );
}

function Score() {
  const { done } = useVisit();
  const count = kQuestionNames.filter((name) => done.answered[name]).length;
  return (
    <p class="score">
      <progress value={count} max={kQuestionNames.length} aria-label="Questions done" />
      <b class="number" id="questions-done">
        {count} of {kQuestionNames.length} done
      </b>
      <button type="button" class="link" disabled={count === 0} onClick={done.forget}>
        start again
      </button>
    </p>
  );
}

function Others() {
  const { steps } = useLesson();
  return steps ? <OwnQuestions steps={steps} /> : <div class="panel waiting" />;
}

/** @param {{ steps: HeadSteps }} props */
function OwnQuestions({ steps }) {
  const lesson = useLesson();
  const { store, state } = lesson;
  const { done } = useVisit();
  const results = useAnswer(lesson, 'scaleExperiment', undefined);
  const { row, column } = cellOf(state, steps);
  const shifted = useAnswer(lesson, 'ropeScores', {
    ...{ q: Array.from(rowOf(steps.q, row)), k: Array.from(rowOf(steps.k, column)) },
    rope: steps.rope ?? { style: 'half', base: 10000 },
    pairs: [
      [row, column],
      [row + kShift, column + kShift],
    ],
  });
  const heaviest = useMemo(() => heaviestQuestion(steps), [steps]);
  return (
    <>
      <QuestionCard number={2} question={heaviest}>
        {done.answered.heaviest && (
          <button
            type="button"
            class="link"
            onClick={() => store.set({ focus: { row: heaviest.row, column: 0 }, locked: true })}
          >
            show the row in the instrument
          </button>
        )}
      </QuestionCard>
      <QuestionCard number={3} question={maskQuestion(steps)} />
      <QuestionCard number={4} question={shiftQuestion(steps, { row, column }, shifted?.scores ?? null)} />
      <QuestionCard number={5} question={saturationQuestion(results?.at(-1))} />
      <QuestionCard number={6} question={cacheQuestion(steps)} />
    </>
  );
}
