/** JavaScript for a value, on one line. @param {unknown} value @returns {string} */
export function written(value) {
  if (Array.isArray(value)) return `[${value.map(written).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([name, each]) => `${name}: ${written(each)}`)
    .join(', ')} }`;
}
