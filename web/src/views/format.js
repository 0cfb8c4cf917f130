// Numbers as the page writes them.

/** @param {number} weight */
export const formatWeight = (weight) => weight.toFixed(3);

/** @param {number} share */
export function formatPercent(share) {
  const percent = 100 * share;
  return `${percent.toFixed(percent >= 99.95 ? 0 : 1)} %`;
}

/** @param {number} milliseconds */
export function formatTime(milliseconds) {
  // Browsers round their clock: a run may begin and end in the same tick.
  if (milliseconds < 0.005) return '< 0.01 ms';
  return `${milliseconds < 10 ? milliseconds.toFixed(2) : milliseconds.toFixed(0)} ms`;
}

/** @param {number} bytes */
export function formatBytes(bytes) {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}

/** With its sign, and no minus before a zero. @param {number} value */
export function formatChange(value) {
  const text = Math.abs(value).toFixed(3);
  return `${value < 0 && Number(text) > 0 ? '−' : '+'}${text}`;
}

/** Of a whole number: 12,345. The first use of the language's own formatter costs as much as a picture. @param {number} count */
export const formatCount = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ',');
