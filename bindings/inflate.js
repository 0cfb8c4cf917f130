// Binaries that stand in the code.

/** Base64 of what deflate made of the binary: a third of its size. @param {string} text @returns {Promise<ArrayBuffer>} */
export function inflate(text) {
  const packed = new Blob([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream('deflate-raw'))).arrayBuffer();
}
