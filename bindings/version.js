/** The version of the package, as in package.json. */
export const version = '0.1.0';
