// Keeps the page on the device: a service worker that has all its files.

export function keepOffline() {
  // Where none may be used (an insecure host, a private window) the page works all the same, with a network.
  if (!('serviceWorker' in navigator)) return;
  navigator.serviceWorker.register(new URL('sw.js', document.baseURI)).catch(() => {});
}
