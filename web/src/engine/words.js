/** A word with its inner apostrophes, or any other visible sign by itself (with the marks that belong to it). */
const kToken = /[\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}\p{N}]+)*|[^\s\p{L}\p{M}\p{N}]\p{M}*/gu;

/** Later tokens are left out, and the page says so. */
export const kMostTokens = 1024;

/**
 * @param {string} text
 * @returns {{ tokens: string[], total: number }} at most kMostTokens tokens, and how many the text has
 */
export function splitText(text) {
  const all = text.match(kToken) ?? [];
  return { tokens: all.slice(0, kMostTokens), total: all.length };
}
