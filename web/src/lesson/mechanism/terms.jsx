// Arithmetic written out.
import { fixed } from '../numbers.js';

/** @typedef {{ name: any, factors: readonly number[], product: number }} Term */

/**
 * A sum of products, term by term.
 * @param {{ label: string, heads: readonly string[], terms: readonly Term[], sum: string, total: number, most?: number }} props
 *   of more than `most` terms those of largest size are listed
 */
export function Terms({ label, heads, terms, sum, total, most = 64 }) {
  const isCut = terms.length > most;
  const listed = isCut ? [...terms].sort((a, b) => Math.abs(b.product) - Math.abs(a.product)).slice(0, most) : terms;
  const largest = Math.max(...listed.map(({ product }) => Math.abs(product)), 1e-12);
  const rest = total - listed.reduce((all, { product }) => all + product, 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keys
    <section class="terms" tabIndex={0} aria-label={label}>
      <table class="plain-table number">
        <thead>
          <tr>
            {heads.map((head, i) => (
              <th key={head} scope="col" class={i > 0 ? 'right' : ''}>
                {head}
              </th>
            ))}
            <td />
          </tr>
        </thead>
        <tbody>
          {listed.map(({ name, factors, product }, i) => (
            <tr key={i}>
              <th scope="row">{name}</th>
              {factors.map((value, f) => (
                <td key={f} class="right">
                  {fixed(value)}
                </td>
              ))}
              <td class="right">{fixed(product)}</td>
              <td class="signed-bar" aria-hidden="true">
                <span
                  class={product < 0 ? 'below' : 'above'}
                  style={{ width: `${(50 * Math.abs(product)) / largest}%`, [product < 0 ? 'right' : 'left']: '50%' }}
                />
              </td>
            </tr>
          ))}
          {isCut && (
            <tr>
              <th scope="row">{terms.length - most} others</th>
              {heads.slice(2).map((head) => (
                <td key={head} />
              ))}
              <td class="right">{fixed(rest)}</td>
              <td />
            </tr>
          )}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{sum}</th>
            {heads.slice(2).map((head) => (
              <td key={head} />
            ))}
            <td class="right">{fixed(total)}</td>
            <td />
          </tr>
        </tfoot>
      </table>
    </section>
  );
}

/** One line of arithmetic. @param {{ children: any }} props */
export const Line = ({ children }) => <p class="line number">{children}</p>;
