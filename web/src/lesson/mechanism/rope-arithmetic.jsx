// One pair of a query, turned.
import { at, factor, fixed } from '../numbers.js';
import { Line } from './terms.jsx';

/** @import { HeadSteps } from '../engine/steps.js' */

/** @param {{ steps: HeadSteps, row: number, channel: number }} props */
export function RopeArithmetic({ steps, row, channel }) {
  const { rope, q, turned, D } = steps;
  if (!rope) return <Line>This layer turns nothing: its queries and keys go on as they are.</Line>;
  const width = rope.rotaryDim ?? D;
  if (channel >= width)
    return (
      <Line>
        Channel {channel} is beyond the {width} that turn.
      </Line>
    );
  const half = width / 2;
  const isHalf = rope.style === 'half';
  const i = isHalf ? channel % half : Math.floor(channel / 2);
  const [first, second] = isHalf ? [i, i + half] : [2 * i, 2 * i + 1];
  const [x1, x2] = [at(q, row, first), at(q, row, second)];
  const [y1, y2] = [at(turned.q, row, first), at(turned.q, row, second)];
  const angle = Math.atan2(x1 * y2 - x2 * y1, x1 * y1 + x2 * y2);
  const [cos, sin] = [fixed(Math.cos(angle)), fixed(Math.sin(angle))];
  return (
    <>
      <Line>
        Channels {first} and {second} are pair {i + 1}. At position {row} it is turned to the angle {fixed(angle)}{' '}
        (whole turns left out): cos = {cos}, sin = {sin}
      </Line>
      <Line>
        x₁′ = {factor(x1)} · {cos} − {factor(x2)} · {factor(Math.sin(angle), 3)} = <b>{fixed(y1)}</b>
      </Line>
      <Line>
        x₂′ = {factor(x2)} · {cos} + {factor(x1)} · {factor(Math.sin(angle), 3)} = <b>{fixed(y2)}</b>
      </Line>
    </>
  );
}
