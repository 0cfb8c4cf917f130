import { useEffect, useMemo, useState } from 'preact/hooks';

const kSlice = 128;

/** A list as it is drawn: of a long one a slice more in each task, since all at once it would hold the page up. @template T @param {T[]} list @returns {T[]} */
export function useGrowing(list) {
  const [count, setCount] = useState(kSlice);
  const most = Math.max(1, Math.ceil(list.length / kSlice)) * kSlice;
  useEffect(() => {
    if (count === most) return;
    const timer = setTimeout(() => setCount(Math.min(count + kSlice, most)));
    return () => clearTimeout(timer);
  }, [count, most]);
  return useMemo(() => (count < list.length ? list.slice(0, count) : list), [list, count]);
}
