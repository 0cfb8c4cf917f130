/** Formulas by name, set when the page is built (web/formulas.js). */
declare module '*.tex' {
  const html: Readonly<Record<string, string>>;
  export default html;
}

declare module '*?worker&url' {
  const url: string;
  export default url;
}

declare module '*?url' {
  const url: string;
  export default url;
}

declare module '*.css';
