/** Colours of the style sheet, for a canvas. @returns {import('./heat-map.js').Colors} */
export function themeColors() {
  const style = getComputedStyle(document.documentElement);
  const color = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: color('ink'),
    faint: color('ink-2'),
    line: color('hatch'),
    ground: color('ground'),
    accent: color('accent'),
  };
}
