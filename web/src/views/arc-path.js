// The arcs over the tokens.
import { curveBasis, line } from 'd3-shape';

const curve = line().curve(curveBasis);

/** Where a token is: its middle, and its upper and lower edge. @typedef {{ x: number, top: number, bottom: number }} Box */

/**
 * From the token that asks to the one that is asked, over the tokens; to another line, from its top to the other's bottom.
 * @param {Box} from @param {Box} to
 */
export function pathOf(from, to) {
  if (from.top === to.top && from.x === to.x) {
    const y = from.top - 1;
    return (
      curve([
        [from.x - 7, y],
        [from.x - 12, y - 12],
        [from.x, y - 24],
        [from.x + 12, y - 12],
        [from.x + 7, y],
      ]) ?? ''
    );
  }
  if (from.top === to.top) {
    const rise = Math.min(34, 12 + Math.abs(to.x - from.x) / 12);
    const y = from.top - 1;
    const third = (to.x - from.x) / 6;
    return (
      curve([
        [from.x, y],
        [from.x + third, y - rise],
        [to.x - third, y - rise],
        [to.x, y],
      ]) ?? ''
    );
  }
  const isAbove = to.top < from.top;
  const [start, end] = isAbove ? [from.top - 1, to.bottom + 1] : [from.bottom + 1, to.top - 1];
  const bend = isAbove ? -14 : 14;
  return (
    curve([
      [from.x, start],
      [from.x, start + bend],
      [to.x, end - bend],
      [to.x, end],
    ]) ?? ''
  );
}
