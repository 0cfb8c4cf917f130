// npm run test:firefox: WebGPU in Firefox, on Mesa's driver for the processor. Not part of npm test: the two take
// 400 MB, and only float16 arithmetic and another compiler of shaders are tested there and nowhere else.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { buildFiles, ensurePackages } from './build.js';
import { ensureSystemPackages, main, projectRoot, run } from './machine.js';

const kFolder = 'tests/firefox';

await main(async () => {
  ensurePackages();
  await buildFiles();
  if (!process.env.FIREFOX) {
    ensureSystemPackages(
      {
        'firefox-esr': '/usr/bin/firefox-esr',
        'mesa-vulkan-drivers': '/usr/share/vulkan/icd.d',
        libvulkan1: '/usr/share/doc/libvulkan1',
      },
      'the tests in Firefox',
    );
  }
  if (!existsSync(join(projectRoot, kFolder, 'node_modules'))) {
    run('npm', ['ci', '--prefix', kFolder, '--ignore-scripts', '--no-audit', '--no-fund']);
  }
  run(process.execPath, ['--test', '--test-reporter=spec', join(kFolder, 'firefox.test.js')]);
});
