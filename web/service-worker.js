// Keeps the files of the page: after the first visit it opens without a network. The build writes which files there are,
// and a version that changes with them.

/** @type {{ version: string, files: string[] }} */
const kBuilt = self.__BUILT__;
const kCache = `attention-${kBuilt.version}`;

self.addEventListener('install', (event) => {
  event.waitUntil(
    caches.open(kCache).then(async (cache) => {
      await cache.addAll(kBuilt.files);
      await self.skipWaiting();
    }),
  );
});

self.addEventListener('activate', (event) => {
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys()) {
        if (name.startsWith('attention-') && name !== kCache) await caches.delete(name);
      }
      await self.clients.claim();
    })(),
  );
});

/** The page itself comes from the network where there is one, so that a new version is seen at once; its files never change. @param {Request} request */
async function answer(request) {
  const cache = await caches.open(kCache);
  if (request.mode === 'navigate') {
    try {
      return await fetch(request);
    } catch {
      return (await cache.match('./')) ?? Response.error();
    }
  }
  return (await cache.match(request, { ignoreSearch: true })) ?? fetch(request);
}

self.addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method === 'GET' && request.url.startsWith(self.registration.scope)) event.respondWith(answer(request));
});
