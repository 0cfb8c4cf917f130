// How far the reader is: a thin line of seven parts, each a way to its section.

/** @typedef {{ name: string, title: string }} Part */

/** @type {readonly Part[]} */
export const kParts = [
  { name: 'intuition', title: 'Intuition' },
  { name: 'formulas', title: 'Formulas' },
  { name: 'mechanism', title: 'Mechanism' },
  { name: 'architecture', title: 'Architecture' },
  { name: 'code', title: 'Code' },
  { name: 'checkpoint', title: 'Checkpoint' },
  { name: 'finish', title: 'Finish' },
];

/** @param {{ current: string, seen: ReadonlySet<string>, isFollowing: boolean, onBack: () => void }} props */
export function Progress({ current, seen, isFollowing, onBack }) {
  const go = (/** @type {string} */ name) => {
    const part = document.getElementById(`part-${name}`);
    part?.scrollIntoView({ behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
    const title = document.getElementById(`part-${name}-title`);
    title?.setAttribute('tabindex', '-1');
    title?.focus({ preventScroll: true });
  };
  const index = kParts.findIndex(({ name }) => name === current);
  return (
    <nav class="lesson-progress" aria-label="Sections of the lesson">
      <ol>
        {kParts.map(({ name, title }, i) => (
          <li key={name}>
            <button
              type="button"
              class={seen.has(name) ? 'seen' : ''}
              aria-current={name === current ? 'step' : undefined}
              aria-label={`${i + 1} ${title}`}
              title={title}
              onClick={() => go(name)}
            />
          </li>
        ))}
      </ol>
      <p class="note">
        <span class="number">
          {index + 1} of {kParts.length}
        </span>{' '}
        · {kParts[index]?.title}
        {!isFollowing && (
          <button type="button" class="link back" onClick={onBack}>
            Back to the lesson’s view
          </button>
        )}
      </p>
    </nav>
  );
}
