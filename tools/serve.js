// Serves a folder of static files on 127.0.0.1, with the headers under which a page may share memory between threads.
// `npm start` and the browser tests use the same server, so that what is tested is what is shown.
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { SetupError } from './machine.js';

const kTypes = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.map': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm', // streaming compilation refuses any other type
};

const kIsolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** The page asks nobody but its own host, and needs no eval; a browser that enforces this proves it at every visit. */
const kPolicy = [
  "default-src 'self'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "img-src 'self' data: blob:",
  "worker-src 'self' blob:",
  "object-src 'none'",
  "base-uri 'none'",
].join('; ');

/**
 * @param {string} folder
 * @param {{ ports?: number[], base?: string, isolated?: boolean, pages?: Record<string, string> }} [options] `ports` are
 *   tried in turn (0: any free one); `base` is the path below which the folder appears; without `isolated` the
 *   shared-memory headers are left out; `pages` are texts of HTML beside the files, by name, under no policy
 * @returns {Promise<{ url: string, close: () => Promise<void> }>}
 */
export async function serve(folder, { ports = [0], base = '/', isolated = true, pages = {} } = {}) {
  const server = createServer((request, response) => answer({ folder, base, isolated, pages }, request, response));
  const port = await listenOnFirstFree(server, ports);
  return {
    url: `http://127.0.0.1:${port}${base}`,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

function answer({ folder, base, isolated, pages }, request, response) {
  const page = pages[(request.url ?? '').slice(base.length)];
  if (page !== undefined) {
    response.writeHead(200, { 'Content-Type': kTypes['.html'], ...(isolated && kIsolation) }).end(page);
    return;
  }
  const path = localPath(folder, base, request.url ?? '/');
  const stats = path && statSync(path, { throwIfNoEntry: false });
  if (!stats?.isFile() || !['GET', 'HEAD'].includes(request.method ?? '')) {
    response.writeHead(404, { 'Content-Type': 'text/plain', ...(isolated && kIsolation) }).end('Not found\n');
    return;
  }
  response.writeHead(200, {
    'Content-Type': kTypes[extname(path)] ?? 'application/octet-stream',
    'Content-Length': stats.size,
    'Cache-Control': 'no-cache',
    'Content-Security-Policy': kPolicy,
    'X-Content-Type-Options': 'nosniff',
    ...(isolated && kIsolation),
  });
  if (request.method === 'HEAD') response.end();
  else createReadStream(path).pipe(response);
}

/** The file a request means, or null when it is outside the folder. */
function localPath(folder, base, url) {
  let path;
  try {
    path = decodeURIComponent(new URL(url, 'http://localhost').pathname);
  } catch {
    return null; // not a valid address
  }
  if (!path.startsWith(base) || path.includes('\0')) return null;
  const inside = normalize(`/${path.slice(base.length)}`);
  return join(folder, inside.endsWith('/') ? `${inside}index.html` : inside);
}

async function listenOnFirstFree(server, ports) {
  for (const port of ports) {
    const error = await new Promise((done) => {
      server.once('error', done);
      server.listen(port, '127.0.0.1', () => {
        server.off('error', done);
        done(null);
      });
    });
    if (!error) return server.address().port;
    if (error.code !== 'EADDRINUSE') throw error;
  }
  const range = ports.length > 1 ? `ports ${ports[0]} to ${ports.at(-1)} are` : `port ${ports[0]} is`;
  throw new SetupError(`${range} in use by another program; PORT=… chooses one.`);
}
