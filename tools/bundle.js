// The JavaScript of dist/: the entries of the package from bindings/, minified, in few files that share what they have
// in common, with source maps; and inline.js, everything in one file.
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kDist } from './glue.js';
import { whenChanged } from './inputs.js';
import { projectRoot, SetupError, say } from './machine.js';

/** Those of package.json, and the file that the package's own workers run. */
export const kEntries = ['index', 'onnx', 'safetensors', 'transformer', 'worker', 'worker-host', 'worker-main'];

/**
 * What several entries share, in as few files as possible: each costs time at the start. `check` is what every entry
 * needs; `core` is the rest of what load() brings.
 */
const kShared = [
  { name: 'check', modules: ['errors', 'check', 'tensor', 'half', 'transformer/pace'] },
  { name: 'core', reachedFrom: 'index' },
  { name: 'webgpu', reachedFrom: 'webgpu/load' },
  { name: 'worker-messages', modules: ['worker-messages'] },
  { name: 'serve-worker', modules: ['worker-host', 'worker-slices'] },
];

/** Classes keep their names: messages and consoles show them. */
const kNames = { class: true, function: false };
const kMinify = { compress: { keepNames: kNames }, mangle: { keepNames: kNames }, codegen: true };

const bindings = (name) => join(projectRoot, 'bindings', name);

/** Where files of dist/ are named. */
const kBuilds = [bindings('builds.js'), bindings('copy.js'), bindings('threads.js'), bindings('single.js')];
const kLinked = './attention.names.js';

/** Nothing is done when no source has changed. */
export async function bundle() {
  const inputs = ['bindings', 'package-lock.json', 'tools/bundle.js', ...glueFiles().map((name) => `dist/${name}`)];
  await whenChanged('bundle', {
    inputs,
    result: 'dist/inline.js',
    work: async () => {
      say('bundling the JavaScript of the package');
      const { rolldown } = await import('rolldown'); // not there before the npm packages are
      for (const name of readdirSync(kDist)) {
        if (/\.js(\.map)?$/.test(name) && !name.startsWith('attention.')) rmSync(join(kDist, name));
      }
      await bundleEntries(rolldown);
      await bundleInline(rolldown);
    },
  });
}

/** What Emscripten made. */
const glueFiles = () => readdirSync(kDist).filter((name) => /^attention\..*\.js$/.test(name));

async function bundleEntries(rolldown) {
  const bundle = await rolldown({
    input: Object.fromEntries(kEntries.map((name) => [name, bindings(`${name}.js`)])),
    cwd: projectRoot,
    platform: 'browser',
    plugins: [besideTheGlue],
  });
  const groups = await sharedGroups(rolldown);
  await bundle.write({
    dir: kDist,
    minify: kMinify,
    sourcemap: true,
    chunkFileNames: '[name].js',
    codeSplitting: { groups },
  });
  await bundle.close();
}

/** dist/ is where the glue is, so the addresses in builds.js, which are relative to bindings/, begin with a dot here. */
const besideTheGlue = {
  name: 'beside-the-glue',
  resolveId: (id, importer) => {
    if (!kBuilds.includes(importer) || !id.startsWith('./attention.')) return null;
    return id === kLinked ? join(kDist, id) : { id, external: true };
  },
  transform: (code, id) => (kBuilds.includes(id) ? { code: code.replaceAll("'../dist/", "'./"), map: null } : null),
};

async function sharedGroups(rolldown) {
  return Promise.all(
    kShared.map(async ({ name, modules, reachedFrom }, n) => {
      const ids = new Set(
        modules ? modules.map((id) => bindings(`${id}.js`)) : await staticImports(rolldown, reachedFrom),
      );
      return { name, priority: kShared.length - n, test: (id) => ids.has(id) };
    }),
  );
}

/** The modules that an entry brings from the start. */
async function staticImports(rolldown, entry) {
  const bundle = await rolldown({ input: bindings(`${entry}.js`), cwd: projectRoot, plugins: [besideTheGlue] });
  const { output } = await bundle.generate();
  await bundle.close();
  const loaded = [output.find(({ isEntry }) => isEntry)];
  for (const { imports } of loaded)
    loaded.push(...output.filter((chunk) => imports.includes(chunk.fileName) && !loaded.includes(chunk)));
  return loaded.flatMap(({ moduleIds }) => moduleIds);
}

async function bundleInline(rolldown) {
  const bundle = await rolldown({
    input: bindings('inline.js'),
    cwd: projectRoot,
    platform: 'browser',
    plugins: [
      { name: 'inline-builds', resolveId: (id) => (id === './builds.js' ? bindings('builds-inline.js') : null) },
    ],
  });
  const { output } = await bundle.generate({ codeSplitting: false, minify: kMinify });
  await bundle.close();
  if (output.length !== 1) throw new SetupError(`inline.js isn't one file but ${output.length}`);
  writeFileSync(join(kDist, 'inline.js'), output[0].code);
}
