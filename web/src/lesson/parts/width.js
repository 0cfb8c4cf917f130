import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** Width of an element, as it changes. */
export function useWidth() {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!place.current) return;
    const observer = new ResizeObserver(([{ contentRect }]) => setWidth(Math.floor(contentRect.width)));
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  return { place, width };
}
