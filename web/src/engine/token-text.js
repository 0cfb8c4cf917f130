// How a token of a vocabulary is written on the page: with its leading space in sight, and whole bytes by number.

/** The bytes that byte-level vocabularies write as themselves; the others get signs from 256 on. */
const kPlain = [
  [33, 126],
  [161, 172],
  [174, 255],
];

/** Sign of a byte-level vocabulary → byte. */
const kBytes = (() => {
  /** @type {Map<string, number>} */
  const bytes = new Map();
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const isPlain = kPlain.some(([first, last]) => byte >= first && byte <= last);
    bytes.set(String.fromCharCode(isPlain ? byte : next++), byte);
  }
  return bytes;
})();

/** @param {string} text */
function visible(text) {
  return text.replace(/ /g, '·').replace(/\n/g, '↵').replace(/\t/g, '⇥');
}

/**
 * @param {string} piece the token as the vocabulary has it
 * @returns {string}
 */
export function tokenText(piece) {
  if (piece === '<|bos|>') return 'bos';
  if (piece.includes('▁')) return visible(piece.replaceAll('▁', ' ')); // SentencePiece
  const bytes = Array.from(piece, (sign) => kBytes.get(sign));
  if (bytes.some((byte) => byte === undefined)) return visible(piece);
  const whole = Uint8Array.from(/** @type {number[]} */ (bytes));
  try {
    return visible(new TextDecoder('utf-8', { fatal: true }).decode(whole));
  } catch {
    // A part of a sign that takes several bytes.
    return Array.from(whole, (byte) => `⟨${byte.toString(16).toUpperCase().padStart(2, '0')}⟩`).join('');
  }
}
