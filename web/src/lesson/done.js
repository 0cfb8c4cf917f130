// What the reader has answered, kept between visits on this device.

/** @typedef {Readonly<{ [name: string]: true }>} Answered by name of the question */
/** @typedef {{ answered: Answered, answer: (name: string) => void, forget: () => void }} Record */

const kKey = 'lesson-answered';

/** @returns {Answered} */
export function storedAnswers() {
  try {
    const stored = JSON.parse(localStorage.getItem(kKey) ?? '{}');
    return Object.fromEntries(Object.keys(stored).map((name) => [name, true]));
  } catch {
    return {}; // storage may be forbidden, or hold what another page left
  }
}

/** @param {Answered} answered */
export function storeAnswers(answered) {
  try {
    localStorage.setItem(kKey, JSON.stringify(answered));
  } catch {
    // Storage may be forbidden; the answers then last for this visit.
  }
}
