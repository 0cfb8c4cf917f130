// One question: an answer is judged at once, and explained.
import { useEffect, useState } from 'preact/hooks';
import { useVisit } from '../context.js';

/**
 * @typedef {object} Question
 * @property {string} name
 * @property {any} asks
 * @property {{ text: any, says?: any }[]} options `says`: what is said to those who choose it
 * @property {number} right
 * @property {any} explains said once it is answered rightly
 * @property {string} [about] what the options depend on: an answer to another question doesn't count for this one
 */

/** @param {{ number: number, question: Question, children?: any }} props */
export function QuestionCard({ number, question, children }) {
  const { name, asks, options, right, explains, about = '' } = question;
  const { done } = useVisit();
  const [chosen, setChosen] = useState(/** @type {number | null} */ (null));
  useEffect(() => setChosen(null), [about]);
  const isRight = chosen === right;
  const choose = (/** @type {number} */ i) => {
    setChosen(i);
    if (i === right) done.answer(name);
  };
  return (
    <fieldset class="panel question" id={`question-${name}`} data-right={right}>
      <legend>
        <span class="part-number number">{number}</span> {asks}{' '}
        {done.answered[name] && <span class="done-mark">done</span>}
      </legend>
      {children}
      <div class="options">
        {options.map(({ text }, i) => (
          <button
            key={i}
            type="button"
            class={`option ${chosen === i ? (isRight ? 'right' : 'wrong') : ''}`}
            aria-pressed={chosen === i}
            onClick={() => choose(i)}
          >
            {chosen === i && <span aria-hidden="true">{isRight ? '✓ ' : '✗ '}</span>}
            {text}
          </button>
        ))}
      </div>
      <div class="verdict" aria-live="polite">
        {chosen !== null && (
          <p>
            <b>{isRight ? 'Right.' : 'Not so.'}</b>{' '}
            {isRight ? explains : (options[chosen]?.says ?? 'Have another look.')}
          </p>
        )}
      </div>
    </fieldset>
  );
}
