// Runs before the first paint, so that the page never flashes in the other theme: the reader's choice of an earlier
// visit, or else the system's.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem('theme');
  } catch {
    // Storage may be forbidden; then the system decides at each visit.
  }
  const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  document.documentElement.dataset.theme = chosen === 'dark' || chosen === 'light' ? chosen : system;
})();
