// Files that the page saves, and what is in them: fields of CSV, boxes and texts of SVG, colours of PNG.
import { readFile } from 'node:fs/promises';
import { interpolateCividis } from 'd3-scale-chromatic';

/** Saves by the button named `format`. @param {import('playwright-core').Page} page */
export async function saved(page, format, kind = 'Matrix') {
  const fold = page.locator('#take-away');
  if ((await fold.getAttribute('open')) === null) await fold.locator('summary').click();
  await page.getByLabel('What', { exact: true }).selectOption(kind);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: format, exact: true }).click(),
  ]);
  return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) };
}

/** Fields of CSV, with quotes. */
export function parsed(text) {
  return text
    .split('\r\n')
    .map((line) =>
      [...`,${line}`.matchAll(/,("(?:[^"]|"")*"|[^",]*)/g)].map(([, field]) =>
        field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field,
      ),
    );
}

/** Values of a row as a file has them: nothing where there is no number. */
export const fieldOf = (value) => (value === null ? '' : String(value));

/** The colour that the scale has for a weight, as a picture has it. */
export const colorOf = (weight) => interpolateCividis(Math.round(weight * 255) / 255);

/** Boxes of a drawing: place, size, colour and what is written about them. */
export const boxesOf = (svg) =>
  [...svg.matchAll(/<rect ([^>]*)\/>/g)].map(([, text]) => {
    const given = Object.fromEntries([...text.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
    const [x, y, width, height] = ['x', 'y', 'width', 'height'].map((name) => Number(given[name]));
    return {
      x,
      y,
      width,
      height,
      fill: given.fill,
      row: Number(given['data-row']),
      key: Number(given['data-key']),
      line: given['data-line'],
    };
  });

/** Texts of a drawing. */
export const textsOf = (svg) =>
  [...svg.matchAll(/<text [^>]*>([^<]*)</g)].map(([, text]) =>
    text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code)),
  );

/** Colours of a PNG in the middle of boxes of the drawing that it was made of, twice its size. */
export const pixelsOf = (page, bytes, boxes) =>
  page.evaluate(
    async ([data, places]) => {
      const whole = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
      const image = await createImageBitmap(new Blob([whole]));
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext('2d', { willReadFrequently: true });
      context.drawImage(image, 0, 0);
      return places.map(({ x, y, width, height }) => {
        const [red, green, blue] = context.getImageData(2 * x + width, 2 * y + height, 1, 1).data;
        return `rgb(${red}, ${green}, ${blue})`;
      });
    },
    [bytes.toString('base64'), boxes],
  );

/** As a picture has it. */
export const rgb = (hex) => `rgb(${[1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16)).join(', ')})`;
