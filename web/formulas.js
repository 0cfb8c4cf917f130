// Formulas are set when the page is built: KaTeX itself stays out of it, and of its fonts only those that are used come
// along, in the one format that every browser reads.
import katex from 'katex';

/** Faces that the lesson's formulas use; the test of the page's downloads finds one that is missing here. */
const kFonts = [
  'KaTeX_Main-Regular',
  'KaTeX_Math-Italic',
  'KaTeX_Size1-Regular',
  'KaTeX_Size2-Regular',
  'KaTeX_Size3-Regular',
];

/** @returns {import('vite').Plugin} */
export function formulas() {
  return {
    name: 'formulas',
    enforce: 'pre',
    transform(code, id) {
      if (id.endsWith('.tex')) return { code: `export default ${JSON.stringify(setAll(code))}`, map: null };
      return id.endsWith('katex.min.css') ? { code: withFewFonts(code), map: null } : null;
    },
  };
}

/** @param {string} text formulas, each under a line `% name` @returns {Record<string, string>} */
function setAll(text) {
  const parts = text.split(/^% (.+)$/m).slice(1);
  const entries = [];
  for (let i = 0; i < parts.length; i += 2) entries.push([parts[i].trim(), setOne(parts[i + 1].trim())]);
  return Object.fromEntries(entries);
}

/** @param {string} tex */
function setOne(tex) {
  const html = katex.renderToString(tex, { displayMode: true, throwOnError: true, strict: false, trust: true });
  // The page's policy forbids styles in markup; a script puts them in place.
  return html.replaceAll(' style="', ' data-style="');
}

/** @param {string} css */
function withFewFonts(css) {
  return css.replace(/@font-face\{[^}]*\}/g, (face) => {
    const source = /url\((fonts\/([\w-]+)\.woff2)\)/.exec(face);
    if (!source || !kFonts.includes(source[2])) return '';
    return face.replace(/src:[^}]*/, `src:url(${source[1]}) format("woff2")`);
  });
}
