// A formula that was set when the page was built. Its symbols may light what they name.
import 'katex/dist/katex.min.css';
import { useEffect, useRef } from 'preact/hooks';
import formulas from '../formulas.tex';

/**
 * @param {{ name: string, lit?: string | null, onLight?: (symbol: string | null) => void }} props `lit` is the name of a
 *   symbol
 */
export function Formula({ name, lit = null, onLight }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    if (!place.current) return;
    place.current.innerHTML = formulas[name];
    for (const node of /** @type {NodeListOf<HTMLElement>} */ (place.current.querySelectorAll('[data-style]'))) {
      node.style.cssText = node.dataset.style ?? '';
    }
  }, [name]);
  useEffect(() => {
    for (const node of /** @type {NodeListOf<HTMLElement>} */ (
      place.current?.querySelectorAll('[data-symbol]') ?? []
    )) {
      node.classList.toggle('lit', node.dataset.symbol === lit);
    }
  }, [name, lit]);
  const symbolAt = (/** @type {Event} */ event) =>
    /** @type {HTMLElement} */ (event.target).closest?.('[data-symbol]')?.getAttribute('data-symbol') ?? null;
  return (
    <div
      class="set-formula"
      ref={place}
      onPointerOver={(event) => onLight?.(symbolAt(event))}
      onPointerLeave={() => onLight?.(null)}
    />
  );
}
