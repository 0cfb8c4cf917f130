// The browsers of the matrix: each opens an address, and the page there reports to its server.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { chromium } from 'playwright-core';

const kPatience = 60_000;

/** One Chromium for all pages of a file. @type {Promise<import('playwright-core').Browser> | null} */
let shared = null;
after(async () => (await shared)?.close());

/** Where Debian has WebKit's small browser: in a folder named after its ABI. */
function miniBrowser() {
  const base = '/usr/lib/x86_64-linux-gnu';
  const folders = existsSync(base) ? readdirSync(base).filter((name) => name.startsWith('webkit2gtk-')) : [];
  return folders.map((name) => join(base, name, 'MiniBrowser')).find((path) => existsSync(path)) ?? null;
}

/** Why one is not here; null where it is. @type {Record<string, { missing: string | null, open: (url: string) => Promise<() => Promise<void>> }>} */
export const browsers = {
  Chromium: {
    missing: existsSync(process.env.CHROMIUM ?? '/usr/bin/chromium') ? null : 'apt-get install chromium',
    open: async (url) => {
      const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
      shared ??= chromium.launch({ executablePath, args: ['--no-sandbox', '--no-first-run'] });
      const page = await (await shared).newPage();
      await page.goto(url);
      return () => page.close();
    },
  },
  'Firefox ESR': {
    missing: existsSync('/usr/bin/firefox-esr') ? null : 'apt-get install firefox-esr',
    open: async (url) => {
      const profile = mkdtempSync(join(tmpdir(), 'firefox-'));
      writeFileSync(join(profile, 'user.js'), 'user_pref("browser.shell.checkDefaultBrowser", false);\n');
      return started('firefox-esr', ['--headless', '--no-remote', '--profile', profile, url], profile);
    },
  },
  WebKitGTK: {
    missing: miniBrowser() && existsSync('/usr/bin/xvfb-run') ? null : 'apt-get install webkit2gtk-driver xvfb dbus',
    open: async (url) =>
      started('xvfb-run', ['-a', 'dbus-run-session', '--', miniBrowser() ?? '', url], null, {
        WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1', // root has no sandbox
      }),
  },
};

/** A program in a process group of its own, which is ended as a whole. */
function started(command, args, folder, env = {}) {
  const child = spawn(command, args, { detached: true, stdio: 'ignore', env: { ...process.env, ...env } });
  return async () => {
    const ended = new Promise((done) => child.once('exit', done));
    try {
      process.kill(-child.pid, 'SIGTERM');
    } catch {
      /* it has ended by itself */
    }
    await Promise.race([ended, new Promise((done) => setTimeout(done, 5000))]);
    if (folder) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  };
}

/** Opens the page of a server and waits for its report. @param {string} name @param {Awaited<ReturnType<import('./support.js').serveOnce>>} server @param {string} [path] */
export async function visit(name, server, path = '/') {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`${name}: no report from ${server.url}${path}`)), kPatience);
  });
  let close;
  try {
    close = await browsers[name].open(server.url + path);
    return await Promise.race([server.result, late]);
  } finally {
    clearTimeout(timer);
    await close?.();
    await server.close();
  }
}
