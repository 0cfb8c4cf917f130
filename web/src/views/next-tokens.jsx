// The tokens that are likeliest after the row in focus, of the model as it was trained and as it was changed.
import { formatPercent } from './format.js';
import { useStore } from './use-store.js';

/** @import { App } from './use-store.js' */

/** @param {{ app: App }} props */
export function NextTokens({ app }) {
  const { off } = useStore(app.store, 'off');
  const { run, candidates, nextRow } = useStore(app.shown, 'run', 'candidates', 'nextRow');
  if (!run || candidates.length === 0) return <div class="next" id="next" hidden />;
  const isChanged = run.changed;
  return (
    <div class="next" id="next">
      <table class="row-table next-table">
        <caption>
          {'Next token after '}
          <b>{`${nextRow} “${run.tokens[nextRow] ?? ''}”`}</b>
        </caption>
        <colgroup>
          <col class="name-column" />
          <col />
          <col class="number-column" />
        </colgroup>
        <thead>
          <tr>
            <th scope="col">Token</th>
            <th scope="col" colSpan={2}>
              Probability
            </th>
          </tr>
        </thead>
        <tbody>
          {candidates.map(({ id, token, before, after }) => (
            <tr key={id}>
              <th scope="row" class="key-name">
                {token}
              </th>
              <td class="bar-cell">
                {isChanged && <div class="bar before" style={`scale: ${before} 1`} />}
                <div class="bar after" style={`scale: ${after} 1`} />
              </td>
              <td class="number">
                {isChanged && (
                  <span class="number before" title="as it was trained">
                    {formatPercent(before)}
                  </span>
                )}
                <span class="number after" title={isChanged ? 'as it was changed' : 'probability'}>
                  {formatPercent(after)}
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {isChanged && (
        <p class="note">
          <span class="swatch before" />
          {' as trained '}
          <span class="swatch after" />
          {off.length > 0 ? ` changed, ${off.length} ${off.length === 1 ? 'head' : 'heads'} off` : ' changed'}
        </p>
      )}
    </div>
  );
}
