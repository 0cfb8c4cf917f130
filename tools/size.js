// npm run size: what a page downloads for `import { load }` and one thread, file by file, as gzip -9.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { main, projectRoot } from './machine.js';

/** Builds without threads; one of them is downloaded. */
const kBuilds = ['relaxed', 'baseline', 'scalar'];

/**
 * @typedef {{ name: string, bytes: number, gzipped: number }} Part
 * @typedef {{ files: Record<string, Part[]>, totals: Record<string, number>, modules: string[], script: string }} Download
 */

/**
 * Bundles `code` and measures the chunk it begins with, and the binary of each build.
 * @param {string} [code] what the page imports
 * @returns {Promise<Download>} `modules`: the files of the package that are loaded from the start; `script`: what they become
 */
export async function download(code = "export { load } from 'attention-wasm';") {
  const entry = join(projectRoot, 'size-entry.js'); // within the package, so that its name leads to it
  const bundle = await rolldown({
    input: { entry },
    cwd: projectRoot,
    platform: 'browser',
    plugins: [
      {
        name: 'entry',
        resolveId: (id) => (id === entry ? id : null),
        load: (id) => (id === entry ? { code, moduleSideEffects: true } : null),
      },
    ],
  });
  const { output } = await bundle.generate({ minify: true, chunkFileNames: '[name].js' });
  await bundle.close();
  const chunks = output.filter((file) => file.type === 'chunk');
  const loaded = withImports(
    chunks.find((chunk) => chunk.isEntry),
    chunks,
  );
  // As one text: what a bundler puts into a chunk of its own, because a part that is fetched later shares it, is the
  // same download.
  const script = loaded.map((chunk) => chunk.code).join('');
  const files = Object.fromEntries(
    kBuilds.map((build) => [
      build,
      [part('JavaScript', script), part('wasm', readFileSync(join(projectRoot, `dist/attention.${build}.wasm`)))],
    ]),
  );
  const totals = Object.fromEntries(
    kBuilds.map((build) => [build, files[build].reduce((sum, { gzipped }) => sum + gzipped, 0)]),
  );
  const modules = loaded
    .flatMap(({ moduleIds }) => moduleIds)
    .filter((id) => id !== entry)
    .map((id) => id.replace(`${projectRoot}/`, ''));
  return { files, totals, modules, script };
}

/** A chunk and all that it imports from the start. */
function withImports(chunk, chunks) {
  const found = new Set([chunk]);
  for (const { imports } of found)
    for (const name of imports) found.add(chunks.find(({ fileName }) => fileName === name));
  return [...found];
}

/** @param {string} name @param {string | Uint8Array} content @returns {Part} */
function part(name, content) {
  return { name, bytes: Buffer.byteLength(content), gzipped: gzipSync(content, { level: 9 }).length };
}

/** The table that is printed. @param {Download} sizes */
export function table({ files, totals }) {
  return kBuilds.map((build) => {
    const parts = files[build].map(({ name, gzipped }) => `${name} ${gzipped.toLocaleString('en')}`);
    return `${build}: ${parts.join(' + ')} = ${totals[build].toLocaleString('en')} bytes`;
  });
}

if (import.meta.filename === process.argv[1]) {
  await main(async () => {
    for (const line of table(await download())) console.log(line);
  });
}
