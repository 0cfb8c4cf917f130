// What the drawings for papers are made of: pieces of SVG in the colours of the page.
import { scaleFor } from '../scale.js';
import { themeColors } from './theme-colors.js';

/** @typedef {{ width: number, height: number, body: string }} Drawing */

export const kMargin = 16;

/** @param {string} text */
const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/** @param {number} value */
export const short = (value) => String(Math.round(value * 100) / 100);

/**
 * @param {string} text @param {number} x @param {number} y @param {{ anchor?: string, fill?: string, turn?: boolean,
 *   size?: number, bold?: boolean }} [how]
 */
export function label(text, x, y, how = {}) {
  const { anchor = 'start', fill = themeColors().ink, turn = false, size = 12, bold = false } = how;
  const turned = turn ? ` transform="rotate(-90 ${short(x)} ${short(y)})"` : '';
  const weight = bold ? ' font-weight="600"' : '';
  return `<text x="${short(x)}" y="${short(y)}" font-size="${size}" text-anchor="${anchor}" fill="${fill}" dominant-baseline="central"${weight}${turned}>${escaped(text)}</text>`;
}

/** A filled box, with numbers about it for whoever reads the file. @param {[number, number, number, number]} box @param {string} fill @param {Record<string, number>} [data] */
export function rectangle([x, y, width, height], fill, data = {}) {
  const more = Object.entries(data).map(([name, value]) => ` data-${name}="${value}"`);
  return `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" fill="${fill}"${more.join('')}/>`;
}

/** A picture of one pixel for each cell. @param {string} href @param {[number, number, number, number]} box */
export const pixels = (href, [x, y, width, height]) =>
  `<image x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" preserveAspectRatio="none" style="image-rendering: pixelated" href="${href}"/>`;

/**
 * The scale of the colours with what it is of and a number at each end.
 * @param {string} show @param {{ name: string, low: string, high: string }} texts @param {number} y @param {number} width
 */
export function ramp(show, { name, low, high }, y, width) {
  const { colors } = scaleFor(show);
  const stops = Array.from({ length: 17 }, (_, i) => {
    const color = colors[Math.round((i / 16) * (colors.length - 1))];
    return `<stop offset="${i / 16}" stop-color="${color}"/>`;
  }).join('');
  const fill = themeColors().faint;
  return (
    `<defs><linearGradient id="ramp">${stops}</linearGradient></defs>` +
    label(name, kMargin, y, { fill }) +
    label(low, kMargin + 112, y, { anchor: 'end', fill }) +
    rectangle([kMargin + 120, y - 6, width, 12], 'url(#ramp)') +
    label(high, kMargin + 128 + width, y, { fill })
  );
}

/** @param {Drawing} drawing @returns {string} a file */
export function svgFile({ width, height, body }) {
  const { ground } = themeColors();
  const size = `width="${short(width)}" height="${short(height)}" viewBox="0 0 ${short(width)} ${short(height)}"`;
  const rest = `font-family="system-ui, sans-serif" style="background: ${ground}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${rest}><rect width="100%" height="100%" fill="${ground}"/>${body}</svg>`;
}
