// npm run docs: the reference of every public name as pages in build/docs, from the types, and the guides beside it.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { build, ensurePackages } from './build.js';
import { main, projectRoot, run, say } from './machine.js';

const kFolder = join(projectRoot, 'tools/docs');

await main(() => {
  ensurePackages();
  build(); // the types name the glue
  if (!existsSync(join(kFolder, 'node_modules/.package-lock.json'))) {
    say('installing typedoc, with a TypeScript that it accepts');
    run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: kFolder });
  }
  run(process.execPath, [join(kFolder, 'node_modules/typedoc/bin/typedoc'), '--options', 'typedoc.json'], {
    cwd: kFolder,
  });
  say('the reference is build/docs/index.html');
});
