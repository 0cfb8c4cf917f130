// The model writes on behind the text, token by token, with the cache of keys and values.
import { Count, Fold, Steps, Switch } from './parts.jsx';
import { useStore } from './use-store.js';

/** @import { App } from './use-store.js' */

const kTemperatures = [0, 0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.5, 2];
const kShares = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 1];
const kMostTokens = 200;

/** @param {{ app: App }} props */
export function WritingPanel({ app }) {
  const { store, shown, session } = app;
  const { writing: settings, added, mask } = useStore(store, 'writing', 'added', 'mask');
  const { run, writing } = useStore(shown, 'run', 'writing');
  const set = (/** @type {Partial<typeof settings>} */ patch) => store.set({ writing: { ...settings, ...patch } });
  const isBusy = writing !== null;
  const written = run?.tokens.slice(run.prompt) ?? [];
  return (
    <Fold title="Write on" id="writing">
      <p>
        Each new token is one row over all tokens so far: its query meets the keys that the cache has kept. The rows
        appear in the matrix as they come.
      </p>
      <div class="buttons">
        <button
          type="button"
          class="plain strong"
          id="write"
          disabled={isBusy || !mask}
          onClick={() => session.write()}
        >
          Write {settings.count} tokens
        </button>
        <button type="button" class="plain" id="stop" disabled={!isBusy} onClick={() => session.stop()}>
          Stop
        </button>
        <button
          type="button"
          class="plain"
          disabled={isBusy || added.length === 0}
          onClick={() => store.set({ added: [], newOnly: false })}
        >
          Take it back
        </button>
      </div>
      {!mask && (
        <p class="note">Without the causal mask no text can be written: each row would need the tokens to come.</p>
      )}
      <output class="written-text" id="written" aria-live="polite">
        {isBusy || written.length > 0 ? `${written.join('')}${writing?.token ?? ''}` : ''}
      </output>
      <div class="switches">
        <Count
          label="Tokens"
          value={settings.count}
          least={1}
          most={kMostTokens}
          onChange={(count) => set({ count })}
        />
        <Count label="Seed" value={settings.seed} least={0} most={2 ** 32 - 1} onChange={(seed) => set({ seed })} />
        <Count
          label="Top-k (0: all)"
          value={settings.topK}
          least={0}
          most={100000}
          onChange={(topK) => set({ topK })}
        />
        <Steps
          label="Temperature"
          values={kTemperatures}
          value={settings.temperature}
          format={(value) => (value === 0 ? '0: the likeliest' : String(value))}
          onChange={(temperature) => set({ temperature })}
        />
        <Steps
          label="Top-p"
          values={kShares}
          value={settings.topP}
          format={(value) => (value === 1 ? '1: all' : String(value))}
          onChange={(topP) => set({ topP })}
        />
        <Switch label="Stop at the end of a sentence" isOn={settings.stop} onChange={(stop) => set({ stop })} />
      </div>
    </Fold>
  );
}
