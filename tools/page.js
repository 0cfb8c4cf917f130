// npm run build:web: builds the page into build/page with Vite, a folder that any host can serve. Does nothing when no
// input has changed.
import { join } from 'node:path';
import { buildFiles, ensurePackages } from './build.js';
import { whenChanged } from './inputs.js';
import { main, projectRoot, say } from './machine.js';

/** @returns {Promise<string>} the folder of the built page */
export async function buildPage() {
  await whenChanged('page', {
    inputs: ['web', 'dist', 'package-lock.json'],
    result: 'build/page/index.html',
    work: async () => {
      say('building the page');
      const { build } = await import('vite'); // not there before the npm packages are
      await build({ configFile: join(projectRoot, 'web/vite.config.js'), logLevel: 'warn' });
    },
  });
  return join(projectRoot, 'build/page');
}

if (import.meta.filename === process.argv[1]) {
  await main(async () => {
    ensurePackages();
    await buildFiles();
    say(`the page is in ${await buildPage()}`);
  });
}
