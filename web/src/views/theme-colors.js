/** @typedef {{ ink: string, faint: string, line: string, ground: string, accent: string, bar: string, arc: string }} Colors */

/** To ask for a style makes the browser work out all that has changed: once for each theme. @type {Map<string, Colors>} */
const known = new Map();

/** Colours of the style sheet, for a canvas. @returns {Colors} */
export function themeColors() {
  const theme = document.documentElement.dataset.theme ?? '';
  let colors = known.get(theme);
  if (!colors) {
    const style = getComputedStyle(document.documentElement);
    const color = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    colors = {
      ...{ ink: color('ink'), faint: color('ink-2'), line: color('hatch'), ground: color('ground') },
      ...{ accent: color('accent'), bar: color('bar'), arc: color('arc') },
    };
    known.set(theme, colors);
  }
  return colors;
}
