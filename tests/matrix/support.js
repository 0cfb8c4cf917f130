// What the tests of this folder share: projects that have installed the packed package, and pages that report to a server.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, createReadStream, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const tarball = process.env.MATRIX_TARBALL;
assert(tarball, 'npm run test:matrix packs the package and sets MATRIX_TARBALL');

export const matrixFolder = fileURLToPath(new URL('.', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'attention-wasm-matrix-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
let template = '';
let count = 0;

/**
 * An empty folder with the package installed from its tarball, and files of its own.
 * @param {Record<string, string>} files @returns {string} its path
 */
export function project(files) {
  if (!template) {
    template = join(work, 'template');
    mkdirSync(template);
    writeFileSync(join(template, 'package.json'), JSON.stringify({ name: 'app', private: true, type: 'module' }));
    const options = ['install', '--prefer-offline', '--no-audit', '--no-fund', tarball];
    execFileSync('npm', options, { cwd: template, stdio: ['ignore', 'ignore', 'inherit'] });
  }
  const folder = join(work, `project-${++count}`);
  cpSync(template, folder, { recursive: true, verbatimSymlinks: true });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

/** The versions of Node, as npm aliases of tests/matrix/package.json. */
export const nodes = ['node-20', 'node-22', 'node-24'];
export const nodeOf = (name) => join(matrixFolder, 'node_modules', name, 'bin/node');

/** Runs a file of a project. @returns what it printed, as JSON */
export function runNode(node, folder, args) {
  const child = spawnSync(nodeOf(node), args, { cwd: folder, encoding: 'utf8', timeout: 60_000 });
  assert.equal(child.status, 0, `${child.error ?? ''} ${child.stderr}`);
  return JSON.parse(child.stdout);
}

/** What every way of loading computes: causal attention over these. */
const kInput = 'const x = { data: Float32Array.from({ length: 24 }, (_, i) => Math.sin(i)), shape: [1, 2, 3, 4] };';
const kCall = 'scaledDotProductAttention(x, x, x, { isCausal: true })';

/** A module that prints or reports what it got. `load` is what it imports. */
export function exercise(load, { options = '', report = 'console.log(JSON.stringify(result))' } = {}) {
  return `${load}
    ${kInput}
    const run = async () => {
      const attention = await load(${options});
      const { output } = await attention.${kCall};
      const { info, memory } = attention;
      attention.dispose();
      return { info, memory, output: [...output.data] };
    };
    run().catch(({ code, message, stack }) => ({ error: message, code, stack })).then((result) => { ${report}; });`;
}

/** For a page: to the server it came from. */
export const toServer = `const isolated = self.crossOriginIsolated;
  fetch('/result', { method: 'POST', body: JSON.stringify({ ...result, isolated }) })`;

/** Checks what exercise() came to. */
export function assertResult(result, wanted = {}) {
  assert.equal(result.error, undefined, `${result.code} ${result.stack}`);
  assert.equal(result.output.length, 24);
  for (const [i, value] of result.output.entries()) {
    assert(Math.abs(value - kWant[i]) < 1e-6, `${i}: ${value} for ${kWant[i]}`);
  }
  for (const [name, value] of Object.entries(wanted)) {
    assert.equal(result.info[name], value, `${name} ${JSON.stringify(result.info)}`);
  }
}

/** The same in float64. */
const kWant = (() => {
  const at = (h, t, c) => Math.fround(Math.sin((h * 3 + t) * 4 + c));
  const out = [];
  for (let h = 0; h < 2; ++h) {
    for (let i = 0; i < 3; ++i) {
      const logits = [0, 1, 2].slice(0, i + 1).map((j) => {
        let dot = 0;
        for (let c = 0; c < 4; ++c) dot += at(h, i, c) * at(h, j, c);
        return dot / 2;
      });
      const most = Math.max(...logits);
      const weights = logits.map((logit) => Math.exp(logit - most));
      const sum = weights.reduce((a, b) => a + b);
      for (let c = 0; c < 4; ++c) out.push(weights.reduce((a, w, j) => a + (w / sum) * at(h, j, c), 0));
    }
  }
  return out;
})();

const kTypes = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.wasm': 'application/wasm',
};
export const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/**
 * Serves a folder to one page, which reports by POST /result.
 * @param {string | ((request: any, response: any) => void)} source a folder, or what answers other requests
 * @param {{ isolated?: boolean, policy?: string }} [options]
 */
export async function serveOnce(source, { isolated = false, policy } = {}) {
  let receive;
  const result = new Promise((done) => {
    receive = done;
  });
  const headers = { ...(isolated && isolation), ...(policy && { 'Content-Security-Policy': policy }) };
  const server = createServer((request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (request.method === 'POST') {
      let body = '';
      request
        .on('data', (text) => (body += text))
        .on('end', () => {
          response.end();
          receive(JSON.parse(body));
        });
    } else if (typeof source === 'function') source(request, response);
    else answer(source, request, response);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const close = () => {
    server.closeAllConnections();
    return new Promise((done) => server.close(done));
  };
  return { url: `http://127.0.0.1:${server.address().port}`, result, close };
}

function answer(folder, request, response) {
  const path = join(folder, normalize(`/${decodeURIComponent(new URL(request.url, 'http://localhost').pathname)}`));
  const file = path.endsWith('/') ? `${path}index.html` : path;
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return response.writeHead(404).end('not found');
  response.setHeader('Content-Type', kTypes[extname(file)] ?? 'application/octet-stream');
  return createReadStream(file).pipe(response);
}

/** A page with one module script. */
export const pageOf = (script) => `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<script type="module" src="${script}"></script>`;
