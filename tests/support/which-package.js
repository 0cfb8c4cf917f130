/** Tests that look inside set this before they import package.js. */
export const which = { sources: false };
