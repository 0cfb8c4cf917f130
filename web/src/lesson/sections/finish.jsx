// 7. What was done, what weights don't show, and where to go on.
import { useMemo } from 'preact/hooks';
import { formatCount } from '../../views/format.js';
import { kQuestionNames } from '../checkpoint/questions.jsx';
import { useLesson, useVisit } from '../context.js';
import { Section } from '../parts/section.jsx';

const kFurther = [
  {
    title: 'Attention Is All You Need',
    by: 'Vaswani and others, 2017: the formula of section 2',
    url: 'https://arxiv.org/abs/1706.03762',
  },
  { title: 'RoFormer', by: 'Su and others, 2021: rotary positions', url: 'https://arxiv.org/abs/2104.09864' },
  {
    title: 'GQA',
    by: 'Ainslie and others, 2023: query heads that share keys and values',
    url: 'https://arxiv.org/abs/2305.13245',
  },
  {
    title: 'FlashAttention',
    by: 'Dao and others, 2022: attention that never holds its weights',
    url: 'https://arxiv.org/abs/2205.14135',
  },
  {
    title: 'In-context Learning and Induction Heads',
    by: 'Olsson and others, 2022: heads like L4·H2',
    url: 'https://arxiv.org/abs/2209.11895',
  },
  {
    title: 'Attention is not Explanation',
    by: 'Jain and Wallace, 2019, and the answer to it,',
    url: 'https://arxiv.org/abs/1902.10186',
  },
  {
    title: 'Attention is not not Explanation',
    by: 'Wiegreffe and Pinter, 2019',
    url: 'https://arxiv.org/abs/1908.04626',
  },
];

export function Finish() {
  return (
    <Section number={7} name="finish" title="What you have done">
      <Summary />
      <aside class="panel honest" aria-labelledby="honest-title">
        <h3 id="honest-title">What attention weights don’t show</h3>
        <ul>
          <li>
            <b>Not why.</b> A weight says how much of a value is taken, not what the value holds, nor whether the rest
            of the model uses it. A large weight on a small value does little.
          </li>
          <li>
            <b>Not where a word came from.</b> From the second layer on, a token’s vector already holds others.
            Attention to “ver” may fetch what “ri” has put there.
          </li>
          <li>
            <b>Resting isn’t reading.</b> Heads with nothing to do put their weight on the first token. That isn’t
            interest in it.
          </li>
          <li>
            <b>One text isn’t a role.</b> The labels under the heads are averages over probes. On your sentence the head
            may do something else.
          </li>
          <li>
            <b>Not the cause.</b> Closer to it is what changes when a head is switched off: the instrument measures
            that. Even then another head may step in.
          </li>
        </ul>
      </aside>
      <p>
        Where to go on: change the text, switch heads off, or drop a model of your own into the instrument. And to read:
      </p>
      <ul class="further">
        {kFurther.map(({ title, by, url }) => (
          <li key={url}>
            <a href={url} rel="noreferrer">
              {title}
            </a>{' '}
            <span class="note">{by}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Summary() {
  const { steps, run } = useLesson();
  const { seen, done } = useVisit();
  const shown = useMemo(run, [steps]);
  const count = kQuestionNames.filter((name) => done.answered[name]).length;
  return (
    <ul class="summary" id="summary">
      <li>
        <b class="number">{seen.size} of 7</b> sections read,{' '}
        <b class="number">
          {count} of {kQuestionNames.length}
        </b>{' '}
        questions done.
      </li>
      {shown && (
        <li>
          Your text has <b class="number">{shown.tokens.length}</b> tokens:{' '}
          <b class="number">{formatCount(shown.layers * shown.heads * shown.tokens.length ** 2)}</b> weights in all
          heads, computed on this device in <b class="number">{shown.milliseconds.toFixed(1)} ms</b>.
        </li>
      )}
      <li>
        You have seen one query meet every key, the mask, the softmax and the sum of the values, number by number.
      </li>
      <li>You have turned positions and seen that only distances count.</li>
      <li>You know what grows with T and what with T², and why the fused kernel doesn’t hold the weights.</li>
    </ul>
  );
}
