// What a script says to someone who may not install system packages.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ensureSystemPackages, findProgram, SetupError } from '../../tools/machine.js';

const kMissing = { 'first-package': '/no/such/file', 'second-package': '/no/such/file/either', node: process.execPath };

test('a user who is not root is shown the one command, with the missing packages only', (t) => {
  t.mock.method(process, 'getuid', () => 1000);
  assert.throws(
    () => ensureSystemPackages(kMissing, 'the test'),
    (error) =>
      error instanceof SetupError &&
      /^the test needs system packages/.test(error.message) &&
      error.message.includes('sudo apt-get install -y --no-install-recommends first-package second-package\n'),
  );
});

test('without apt-get the packages are named', (t) => {
  const path = process.env.PATH;
  t.after(() => {
    process.env.PATH = path;
  });
  process.env.PATH = '/no/such/folder';
  assert.equal(findProgram('apt-get'), null);
  assert.throws(() => ensureSystemPackages(kMissing, 'the test'), /needs first-package, second-package\. .*no apt-get/);
});

test('nothing is done where nothing is missing', () => {
  ensureSystemPackages({ node: process.execPath }, 'the test');
});
