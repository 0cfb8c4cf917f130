// 4. The block as a diagram: what each part holds and costs, and what sharing key/value heads saves.
import { useState } from 'preact/hooks';
import { formatCount } from '../../views/format.js';
import { CacheTable } from '../architecture/cache-table.jsx';
import { Diagram } from '../architecture/diagram.jsx';
import { partsOf } from '../architecture/parts.js';
import { useAnswer, useLesson } from '../context.js';
import { bytesText, short } from '../numbers.js';
import { Section } from '../parts/section.jsx';
import { Slider } from '../parts/slider.jsx';

/** @import { Sizes } from '../architecture/parts.js' */

const kLeast = { T: 4, heads: 0 };
const kMost = { T: 17, heads: 6 };

export function Architecture() {
  return (
    <Section number={4} name="architecture" title="What the parts hold and cost">
      <p>
        A layer of a decoder in one picture. Choose a part: its shapes, its parameters, how much it computes, and how
        that grows with the length T. The sizes are those of the model in the instrument, until you move a slider.
      </p>
      <Inspector />
    </Section>
  );
}

function Inspector() {
  const lesson = useLesson();
  const { state, steps } = lesson;
  const model = state.model === 'untrained' ? null : { model: state.model };
  const live = useAnswer(lesson, 'sizes', model);
  const [own, setOwn] = useState(/** @type {Partial<Sizes>} */ ({}));
  const [chosen, setChosen] = useState('scores');
  if (!steps || (model && !live)) return <div class="panel inspector" />;
  /** @type {Sizes} */
  const actual =
    model && live
      ? {
          T: steps.tokens.length,
          width: live.width,
          heads: live.heads,
          kvHeads: live.kvHeads,
          D: live.headDim,
          inner: live.inner,
          layers: live.layers,
          vocabulary: live.vocabulary,
        }
      : {
          T: steps.tokens.length,
          width: steps.width,
          heads: steps.heads,
          kvHeads: steps.kvHeads,
          D: steps.D,
          inner: 0,
          layers: 1,
          vocabulary: 0,
        };
  const sizes = { ...actual, ...own };
  const parts = partsOf(sizes, Boolean(steps.rope));
  const part = parts.find(({ name }) => name === chosen) ?? parts[0];
  const isOwn = Object.keys(own).length > 0;
  return (
    <div class="panel inspector" id="inspector">
      <div class="sliders">
        <Slider
          label="Length T"
          value={Math.log2(sizes.T)}
          least={kLeast.T}
          most={kMost.T}
          step={0.01}
          text={formatCount(sizes.T)}
          onChange={(value) => setOwn({ ...own, T: lengthOf(value) })}
        />
        <Slider
          label="Query heads H"
          value={Math.log2(sizes.heads)}
          least={kLeast.heads}
          most={kMost.heads}
          text={String(sizes.heads)}
          onChange={(value) => setOwn({ ...own, heads: 2 ** value, kvHeads: Math.min(sizes.kvHeads, 2 ** value) })}
        />
        <Slider
          label="Key/value heads"
          value={Math.log2(sizes.kvHeads)}
          most={Math.log2(sizes.heads)}
          text={String(sizes.kvHeads)}
          onChange={(value) => setOwn({ ...own, kvHeads: 2 ** value })}
        />
        <button type="button" class="plain" disabled={!isOwn} onClick={() => setOwn({})}>
          Sizes of the live model
        </button>
      </div>
      <div class="inspector-body">
        <Diagram parts={parts} chosen={part.name} onChoose={setChosen} />
        <div class="part-facts" aria-live="polite" id="part-facts">
          <h3>{part.title}</h3>
          <p>{part.says}</p>
          <dl>
            <dt>Shapes</dt>
            <dd class="number">{part.shapes}</dd>
            <dt>Parameters</dt>
            <dd class="number">{formatCount(part.parameters)}</dd>
            <dt>Operations</dt>
            <dd class="number">
              {short(part.flops)} <span class="note">{part.formula}</span>
            </dd>
            <dt>Grows as</dt>
            <dd>{part.growth}</dd>
            <dt>Memory</dt>
            <dd class="number">{part.memory}</dd>
          </dl>
        </div>
      </div>
      <Sum sizes={sizes} parts={parts} parameters={isOwn ? null : (live?.parameters ?? null)} />
      <CacheTable sizes={sizes} />
    </div>
  );
}

/** Round, where a slider of powers gives it. @param {number} power */
function lengthOf(power) {
  const T = 2 ** power;
  if (Number.isInteger(power)) return T;
  return T < 64 ? Math.round(T) : Number(T.toPrecision(2));
}

/** @param {{ sizes: Sizes, parts: import('../architecture/parts.js').Part[], parameters: number | null }} props */
function Sum({ sizes, parts, parameters }) {
  const inBlock = parts.reduce((sum, part) => sum + part.parameters, 0);
  const flops = parts.reduce((sum, part) => sum + part.flops, 0) * sizes.layers;
  const outside = sizes.vocabulary * sizes.width + sizes.width;
  const whole = inBlock * sizes.layers + outside;
  const weights = 4 * sizes.layers * sizes.heads * sizes.T ** 2;
  return (
    <p class="note number" id="sum">
      {sizes.layers === 1 ? 'One layer' : `${sizes.layers} layers`} of {formatCount(inBlock)} parameters
      {parameters !== null &&
        `, ${formatCount(outside)} in the embedding and the last norm: ${formatCount(whole)}${whole === parameters ? ', as the model has' : ''}`}
      . A pass over T = {formatCount(sizes.T)}: {short(flops)} operations; all its attention weights would be{' '}
      {bytesText(weights)}, and the fused kernel never holds them.
    </p>
  );
}
