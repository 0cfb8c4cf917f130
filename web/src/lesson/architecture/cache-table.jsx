// MHA, GQA and MQA side by side: what the keys and values of a text take.
import { formatCount } from '../../views/format.js';
import { bytesText } from '../numbers.js';

/** @import { Sizes } from './parts.js' */

/** Bytes of a number; q8_0 has 34 for each 32. */
const kTypes = { float32: 4, float16: 2, q8_0: 34 / 32 };

/** @param {{ sizes: Sizes }} props */
export function CacheTable({ sizes }) {
  const { T, heads, kvHeads, D, layers } = sizes;
  const shared = kvHeads < heads && kvHeads > 1 ? kvHeads : Math.max(1, Math.floor(heads / 2));
  const kinds = [
    { name: 'MHA', says: 'a key/value head for each query head', count: heads },
    { name: 'GQA', says: `${heads / shared} query heads share one`, count: shared },
    { name: 'MQA', says: 'all query heads share one', count: 1 },
  ];
  const bytes = (/** @type {number} */ count, /** @type {number} */ size) => 2 * layers * count * D * size * T;
  const most = bytes(heads, 4);
  return (
    <table class="plain-table cache" id="cache">
      <caption>Keys and values of T = {formatCount(T)} tokens, kept for the next one</caption>
      <thead>
        <tr>
          <th scope="col">Heads</th>
          {Object.keys(kTypes).map((name) => (
            <th key={name} scope="col" class="right">
              {name}
            </th>
          ))}
          <td />
        </tr>
      </thead>
      <tbody>
        {kinds.map(({ name, says, count }) => (
          <tr key={name} class={count === kvHeads ? 'chosen' : ''}>
            <th scope="row">
              <b>{name}</b>{' '}
              <span class="note">
                <span class="number">{count}</span>: {says}
              </span>
            </th>
            {Object.entries(kTypes).map(([type, size]) => (
              <td key={type} class="number right">
                {bytesText(bytes(count, size))}
              </td>
            ))}
            <td class="bar-cell narrow">
              <span class="bar" style={{ width: `${(100 * bytes(count, 4)) / most}%` }} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
