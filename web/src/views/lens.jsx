// The logit lens: what the model would say if it ended behind each of its layers.
import { formatPercent } from './format.js';
import { Fold } from './parts.jsx';
import { useStore } from './use-store.js';

/** @import { App } from './use-store.js' */

/** @param {{ app: App }} props */
export function LensPanel({ app }) {
  const { store, shown } = app;
  const { lens: isOpen } = useStore(store, 'lens');
  const { run, lens, nextRow } = useStore(shown, 'run', 'lens', 'nextRow');
  const last = lens.length - 1;
  const final = lens[last]?.tokens[0]?.id;
  return (
    <Fold title="Layer by layer" id="lens" isOpen={isOpen} onToggle={(open) => store.set({ lens: open })}>
      <p>
        The last norm and projection, put behind each layer: which token would come next if the model ended there. The
        answer that stands at the end is marked wherever it leads or follows.
      </p>
      {run && lens.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls where there is no room
        <section class="scroll" tabIndex={0} aria-label="Layer by layer">
          <table class="lens-table">
            <caption>{`After ${nextRow} “${run.tokens[nextRow] ?? ''}”`}</caption>
            <thead>
              <tr>
                <th scope="col">Behind</th>
                {lens[0].tokens.map((_, i) => (
                  <th scope="col" key={i}>
                    {i + 1}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {lens.map(({ layer, tokens }) => (
                <tr key={layer}>
                  <th scope="row">{layer === 0 ? 'embedding' : `layer ${layer - 1}`}</th>
                  {tokens.map(({ id, token, probability }) => (
                    <td key={id} class={id === final ? 'final' : ''}>
                      <span class="token-name">{token}</span>
                      <span class="number">{formatPercent(probability)}</span>
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </Fold>
  );
}
