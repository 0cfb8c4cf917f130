import { useEffect, useState } from 'preact/hooks';

/** Light or dark, as it changes: pictures are drawn for one of them. @returns {string} */
export function useTheme() {
  const root = document.documentElement;
  const [theme, setTheme] = useState(root.dataset.theme ?? 'light');
  useEffect(() => {
    const observer = new MutationObserver(() => setTheme(root.dataset.theme ?? 'light'));
    observer.observe(root, { attributeFilter: ['data-theme'] });
    return () => observer.disconnect();
  }, [root]);
  return theme;
}
