// Values on their way between Node and a page, where JSON alone would lose typed arrays and numbers that aren't finite.

/** @param {unknown} value @returns {string} */
export function pack(value) {
  return JSON.stringify(value, (_, x) => {
    if (ArrayBuffer.isView(x)) {
      const bytes = new Uint8Array(x.buffer, x.byteOffset, x.byteLength);
      let text = '';
      for (let at = 0; at < bytes.length; at += 4096) text += String.fromCharCode(...bytes.subarray(at, at + 4096));
      return { type: x[Symbol.toStringTag], base64: btoa(text) };
    }
    return typeof x === 'number' && !Number.isFinite(x) ? { type: 'number', text: String(x) } : x;
  });
}

/** @param {string} text @returns {any} */
export function unpack(text) {
  return JSON.parse(text, (_, x) => {
    if (x?.type === 'number') return Number(x.text);
    if (x?.base64 === undefined) return x;
    const bytes = Uint8Array.from(atob(x.base64), (c) => c.charCodeAt(0));
    return new globalThis[x.type](bytes.buffer);
  });
}
