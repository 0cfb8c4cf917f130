// The model asked to attend otherwise: heads off, alone and in groups; the mask, the scale, the softmax, RoPE and a window.
import { hasOneScale, kAsTrained } from '../engine/rules.js';
import { headsWith } from '../roles.js';
import { headName, orderedHeads, sameHead } from '../state.js';
import { formatPercent } from './format.js';
import { Steps, Switch } from './parts.jsx';
import { useStore } from './use-store.js';

/** @import { Effect, HeadName } from '../types.js' */
/** @import { Role } from '../roles.js' */
/** @import { State } from '../state.js' */
/** @import { App } from './use-store.js' */

const kScales = [0, 0.125, 0.25, 0.5, 0.75, 1, 1.5, 2, 4, 8];
const kTemperatures = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 4, 10];
const kCaps = [0.5, 1, 2, 5, 10, 20, 50, 1000]; // the last one stands for none
const kWindows = [0, 1, 2, 4, 8, 16, 32, 64, 128, 100000]; // the last one stands for all

/** @param {{ app: App }} props */
export function WhatIf({ app }) {
  const { store } = app;
  const state = useStore(store, ...attentionNames, 'off', 'model');
  const isChanged = state.off.length > 0 || attentionNames.some((name) => state[name] !== kAsTrained[name]);
  if (state.model === 'untrained') return null;
  return (
    <>
      <h2 id="ablation-title">What if</h2>
      <p>
        The kernels run again with each change; the bars of the next token show both, and “Change” below the matrix
        shows what became of each weight.
      </p>
      <AttentionSwitches app={app} />
      <HeadSwitches app={app} />
      <div class="buttons">
        <button
          type="button"
          class="plain"
          id="as-trained"
          disabled={!isChanged}
          onClick={() => store.set({ ...kAsTrained, off: [], show: state.show === 'change' ? 'weights' : state.show })}
        >
          As it was trained
        </button>
      </div>
    </>
  );
}

const attentionNames = /** @type {(keyof typeof kAsTrained)[]} */ (Object.keys(kAsTrained));

/** @param {{ app: App }} props */
function AttentionSwitches({ app: { store, shown } }) {
  const { mask, scale, temperature, rotary, softcap, window } = useStore(store, ...attentionNames);
  const { model } = useStore(shown, 'model');
  const depth = Math.sqrt(model?.headDim ?? 1);
  const times = (/** @type {number} */ value) =>
    value === 1 ? '1/√d, as trained' : value === 0 ? '0: all scores alike' : `${value}/√d`;
  return (
    <div class="switches">
      <Switch label="Causal mask" isOn={mask} onChange={(isOn) => store.set({ mask: isOn })} />
      {model?.hasRope !== false && (
        <Switch label="Rotary positions (RoPE)" isOn={rotary} onChange={(isOn) => store.set({ rotary: isOn })} />
      )}
      {(!model || hasOneScale(model.attention)) && (
        <>
          <Steps
            label="Scale"
            values={kScales}
            value={scale}
            format={times}
            onChange={(value) => store.set({ scale: value })}
          />
          <Switch
            label="No scale (scores times √d)"
            isOn={Math.abs(scale - depth) < 1e-3}
            onChange={(isOn) => store.set({ scale: isOn ? Number(depth.toFixed(4)) : 1 })}
          />
        </>
      )}
      <Steps
        label="Temperature"
        values={kTemperatures}
        value={temperature}
        format={(value) => (value === 1 ? '1, as trained' : String(value))}
        onChange={(value) => store.set({ temperature: value })}
      />
      <Steps
        label="Softcap"
        values={kCaps}
        value={softcap || 1000}
        format={(value) => (value === 1000 ? 'off' : `±${value}`)}
        onChange={(value) => store.set({ softcap: value === 1000 ? 0 : value })}
      />
      <Steps
        label="Window"
        values={kWindows}
        value={window < 0 ? 100000 : window}
        format={(value) =>
          value === 100000 ? 'all tokens' : value === 0 ? 'itself alone' : `itself and ${value} more`
        }
        onChange={(value) => store.set({ window: value === 100000 ? -1 : value })}
      />
    </div>
  );
}

/** @type {readonly { id: string, role: Role, name: string }[]} */
const kGroups = [
  { id: 'off-induction', role: 'induction', name: 'induction heads' },
  { id: 'off-previous', role: 'previous token', name: 'previous-token heads' },
];

/** @param {{ app: App }} props */
function HeadSwitches({ app: { store, shown } }) {
  const { at, off } = useStore(store, 'at', 'off');
  const { scores, effects } = useStore(shown, 'scores', 'effects');
  const isOff = (/** @type {HeadName} */ head) => off.some((each) => sameHead(each, head));
  /** @param {readonly HeadName[]} heads @param {boolean} isNowOff */
  function change(heads, isNowOff) {
    const others = off.filter((each) => !heads.some((head) => sameHead(head, each)));
    store.set({ off: isNowOff ? orderedHeads([...others, ...heads]) : others });
  }
  return (
    <>
      <h3>Heads off</h3>
      <p>
        What a head says can be kept out of the sum. One of several that do the same is hardly missed: switch the group,
        and see which token comes next.
      </p>
      <div class="buttons">
        <Switch id="head-on" label={`${headName(at)} on`} isOn={!isOff(at)} onChange={(isOn) => change([at], !isOn)} />
        {kGroups.map(({ id, role, name }) => {
          const heads = scores ? headsWith(scores, role) : [];
          const areOff = heads.length > 0 && heads.every(isOff);
          return (
            <button
              key={id}
              type="button"
              class="plain"
              id={id}
              aria-pressed={areOff}
              disabled={heads.length === 0}
              onClick={() => change(heads, !areOff)}
            >
              {heads.length > 0 ? `All ${heads.length} ${name} off` : `All ${name} off`}
            </button>
          );
        })}
        <button type="button" class="plain" disabled={off.length === 0} onClick={() => store.set({ off: [] })}>
          All on
        </button>
      </div>
      <p class="note" id="off-list" aria-live="polite">
        {off.length ? `Off: ${off.map(headName).join(', ')}.` : 'All heads are on.'}
      </p>
      <EffectTable effects={effects} off={off} />
    </>
  );
}

/** @param {{ effects: { before: Effect | null, after: Effect | null }, off: State['off'] }} props */
function EffectTable({ effects: { before, after }, off }) {
  const copying = (/** @type {Effect} */ effect) => formatPercent(effect.copying);
  const loss = (/** @type {Effect} */ effect) => (effect.loss === null ? '–' : effect.loss.toFixed(3));
  const text = (/** @type {Effect | null} */ effect, /** @type {(effect: Effect) => string} */ format) =>
    effect ? format(effect) : 'measuring …';
  const afterText = (/** @type {(effect: Effect) => string} */ format) => (off.length ? text(after, format) : '–');
  return (
    <>
      <table class="effects">
        <thead>
          <tr>
            <td />
            <th scope="col" class="top-name">
              All on
            </th>
            <th scope="col" class="top-name">
              As switched
            </th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">Copies a repeated random run</th>
            <td class="number" id="copying-before">
              {text(before, copying)}
            </td>
            <td class="number" id="copying-after">
              {afterText(copying)}
            </td>
          </tr>
          <tr>
            <th scope="row">Loss on prose, nats per token</th>
            <td class="number" id="loss-before">
              {text(before, loss)}
            </td>
            <td class="number" id="loss-after">
              {afterText(loss)}
            </td>
          </tr>
        </tbody>
      </table>
      <p class="note" id="effect-sample">
        {before
          ? `Measured here on ${before.copied} tokens of repeated random runs and ${before.lossTokens} tokens of Austen that the model was not trained on; heads off alone count here.`
          : ''}
      </p>
    </>
  );
}
