// 3. One head, step by step, with the reader's own numbers.
import { useRef, useState } from 'preact/hooks';
import { headName } from '../../state.js';
import { useLesson } from '../context.js';
import { kSteps } from '../mechanism/steps.jsx';
import { Formula } from '../parts/formula.jsx';
import { Section } from '../parts/section.jsx';
import { TensorMap } from '../parts/tensor-map.jsx';
import { cellOf, TokenPicker } from '../parts/token-picker.jsx';
import { useWidth } from '../parts/width.js';

export function Mechanism() {
  return (
    <Section number={3} name="mechanism" title="Step by step, with your numbers">
      <p>
        Now the whole way, from the hidden states of a layer to what one of its heads adds to them. Go forward and back
        with the buttons or with the arrow keys; choose a cell in the pictures or in the lists, and its arithmetic is
        written out.
      </p>
      <Stepper />
    </Section>
  );
}

function Stepper() {
  const lesson = useLesson();
  const { state, steps, store } = lesson;
  const [index, setIndex] = useState(0);
  const [channel, setChannel] = useState(0);
  const region = useRef(/** @type {HTMLElement | null} */ (null));
  const step = kSteps[index];
  const go = (/** @type {number} */ to) => setIndex(Math.max(0, Math.min(kSteps.length - 1, to)));
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const isField = /^(SELECT|INPUT)$/.test(/** @type {HTMLElement} */ (event.target).tagName);
    if (isField || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'ArrowRight') go(index + 1);
    else if (event.key === 'ArrowLeft') go(index - 1);
    else return;
    event.preventDefault();
  };
  const cell = cellOf(state, steps);
  const width = step.channels?.(steps) ?? 0;
  const context = steps && { steps, ...cell, channel: Math.min(channel, Math.max(0, width - 1)) };
  const pictures = (context && step.tensors(context).filter(({ tensor }) => tensor)) ?? [];
  const { place, width: room } = useWidth();
  const side = sideFor(pictures.length, room);
  const pick =
    (/** @type {'row' | 'column' | undefined} */ rows, /** @type {boolean} */ isSquare) =>
    (/** @type {number} */ r, /** @type {number} */ c) => {
      if (isSquare) store.set({ focus: { row: r, column: c }, locked: true });
      else {
        store.set({ focus: { ...cell, [rows ?? 'row']: r }, locked: true });
        setChannel(c);
      }
    };
  return (
    <section class="panel stepper" id="stepper" ref={region} aria-label="Steps of one head" onKeyDown={onKeyDown}>
      <ol class="step-dots">
        {kSteps.map(({ title }, i) => (
          <li key={title}>
            <button
              type="button"
              aria-label={`Step ${i + 1}: ${title}`}
              aria-current={i === index ? 'step' : undefined}
              onClick={() => go(i)}
            >
              <span class="number">{i + 1}</span>
            </button>
          </li>
        ))}
      </ol>
      <div class="step-bar">
        <button type="button" class="plain" disabled={index === 0} onClick={() => go(index - 1)}>
          ← Back
        </button>
        <h3 aria-live="polite">
          <span class="note number">
            {index + 1} of {kSteps.length}
          </span>{' '}
          {step.title}
        </h3>
        <button type="button" class="plain" disabled={index === kSteps.length - 1} onClick={() => go(index + 1)}>
          Next →
        </button>
      </div>
      <p>{step.says}</p>
      <Formula name={step.formula} />
      <p class="note">
        Head <b>{headName(steps?.at ?? state.at)}</b>
        {steps && (
          <span class="number">
            : T = {steps.tokens.length}, d = {steps.width}, {steps.heads} heads of {steps.D} on {steps.kvHeads}{' '}
            key/value heads
          </span>
        )}
      </p>
      <div class="tensors" ref={place}>
        {context &&
          step
            .tensors(context)
            .map(
              ({ tensor, rows, isSquare, marksChannel, ...map }) =>
                tensor && (
                  <TensorMap
                    key={map.name}
                    tensor={tensor}
                    row={rows === 'column' ? cell.column : cell.row}
                    column={isSquare ? cell.column : marksChannel ? context.channel : null}
                    width={side}
                    height={Math.min(260, side)}
                    onPick={pick(rows, isSquare ?? false)}
                    {...map}
                  />
                ),
            )}
      </div>
      <div class="picker-line">
        <TokenPicker withKey={step.withKey ?? false} />
        {width > 0 && (
          <label class="pick">
            <span>Channel</span>
            <select value={context?.channel ?? 0} onChange={(event) => setChannel(Number(event.currentTarget.value))}>
              {Array.from({ length: width }, (_, c) => (
                <option key={c} value={c}>
                  {c}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      <div class="arithmetic" aria-live="polite">
        {context && step.arithmetic(context)}
      </div>
    </section>
  );
}

/** Room for each of several pictures side by side; on a phone they are two abreast. @param {number} count @param {number} room */
function sideFor(count, room) {
  const abreast = room < 480 ? Math.min(2, count) : count;
  return Math.max(96, Math.floor((room - 24 * (abreast - 1)) / Math.max(1, abreast)) - 8);
}
