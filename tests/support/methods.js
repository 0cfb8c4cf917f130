/** Names of what a class has of its own and of the classes that it extends. @param {object} prototype @returns {string[]} */
export function namesOf(prototype) {
  const names = new Set();
  for (let of = prototype; of !== Object.prototype; of = Object.getPrototypeOf(of)) {
    for (const name of Object.getOwnPropertyNames(of)) names.add(name);
  }
  return [...names];
}
