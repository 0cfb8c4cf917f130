// A section of the lesson: its number, its title, and whether it can be taken up by the instrument.
import { InTurn } from './in-turn.jsx';

/** @param {{ number: number, name: string, title: string, children: any }} props */
export function Section({ number, name, title, children }) {
  return (
    <section class="part" id={`part-${name}`} aria-labelledby={`part-${name}-title`} data-section={name}>
      <h2 id={`part-${name}-title`}>
        <span class="part-number number">{number}</span> {title}
      </h2>
      <InTurn place={number}>{children}</InTurn>
    </section>
  );
}
