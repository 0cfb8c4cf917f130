// Files that are made in the page, a slice of work at a time, and saved.

const kSlice = 8; // milliseconds between two looks at what else there is to do

/** @param {AsyncIterable<string>} parts @param {string} type @returns {Promise<Blob>} */
export async function textFile(parts, type) {
  /** @type {string[]} */
  const texts = [];
  let end = performance.now() + kSlice;
  for await (const part of parts) {
    texts.push(part);
    if (performance.now() < end) continue;
    await new Promise((resolve) => setTimeout(resolve));
    end = performance.now() + kSlice;
  }
  return new Blob(texts, { type });
}

const kPixels = 2; // for each unit of the drawing

/** @param {Blob} svg @returns {Promise<Blob>} PNG */
export async function rasterOf(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  try {
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = kPixels * image.width;
    canvas.height = kPixels * image.height;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) => {
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the picture is too large'))));
    });
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

/** A picture for a drawing. @param {OffscreenCanvas} canvas @returns {Promise<string>} data: URL of a PNG */
export async function dataUrl(canvas) {
  const blob = await canvas.convertToBlob();
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(String(reader.result)));
    reader.addEventListener('error', () => reject(reader.error));
    reader.readAsDataURL(blob);
  });
}

/** @param {Blob} blob @param {string} name */
export function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
