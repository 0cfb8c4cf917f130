// The server behind `npm start` and the browser tests.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { serve } from '../../tools/serve.js';

let folder;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'serve-'));
  writeFileSync(join(folder, 'index.html'), '<p>page</p>');
  writeFileSync(join(folder, 'kernel.wasm'), new Uint8Array([0, 0x61, 0x73, 0x6d]));
});
after(() => rmSync(folder, { recursive: true }));

async function withServer(options, body) {
  const server = await serve(folder, options);
  try {
    await body(server.url);
  } finally {
    await server.close();
  }
}

/** As fetch, with the path sent as it is: fetch would resolve dots. */
function rawStatus(url, path) {
  const { hostname, port } = new URL(url);
  return new Promise((done, fail) => {
    request({ hostname, port, path }, (response) => {
      response.resume();
      done(response.statusCode);
    })
      .on('error', fail)
      .end();
  });
}

test('files come with their type and the headers for shared memory', async () => {
  await withServer({}, async (url) => {
    const page = await fetch(url);
    assert.equal(await page.text(), '<p>page</p>');
    assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(page.headers.get('cross-origin-opener-policy'), 'same-origin');
    assert.equal(page.headers.get('cross-origin-embedder-policy'), 'require-corp');
    assert.equal(page.headers.get('cross-origin-resource-policy'), 'same-origin');
    const wasm = await fetch(`${url}kernel.wasm`, { method: 'HEAD' });
    assert.equal(wasm.headers.get('content-type'), 'application/wasm');
    assert.equal(wasm.headers.get('content-length'), '4');
  });
});

test('without isolation these headers are left out', async () => {
  await withServer({ isolated: false }, async (url) => {
    assert.equal((await fetch(url)).headers.get('cross-origin-opener-policy'), null);
  });
});

test('nothing outside the folder is served, however the path is written', async () => {
  await withServer({ base: '/deep/' }, async (url) => {
    assert.equal((await fetch(url)).status, 200);
    const inTmp = folder.split('/').length;
    const up = '../'.repeat(inTmp);
    for (const path of [
      `/deep/${up}etc/passwd`,
      `/deep/${up.replaceAll('.', '%2e')}etc/passwd`,
      `/deep/${up.replaceAll('/', '%2f')}etc/passwd`,
      '/deep/%00',
      '/deep/%zz',
      '/index.html',
      '/deep/missing',
    ]) {
      assert.equal(await rawStatus(url, path), 404, path);
    }
  });
});

test('a port in use is passed over; when all are, the message says so', async () => {
  await withServer({}, async (url) => {
    const taken = Number(new URL(url).port);
    await withServer({ ports: [taken, 0] }, async (other) => assert.notEqual(new URL(other).port, String(taken)));
    await assert.rejects(serve(folder, { ports: [taken] }), new RegExp(`port ${taken} is in use`));
  });
});
