// npm start: installs what is missing, builds, and serves the page until it is stopped.
import { buildFiles, ensurePackages } from './build.js';
import { main, SetupError, say } from './machine.js';
import { buildPage } from './page.js';
import { serve } from './serve.js';

const kFirstPort = 5173;
const kPortsTried = 50;

await main(async () => {
  const ports = wantedPorts();
  ensurePackages();
  await buildFiles();
  const folder = await buildPage();
  const { url } = await serve(folder, { ports });
  say(`the page is at ${url} (Ctrl+C stops)`);
});

/** PORT if it is set, and then only that one; otherwise the first that is free. */
function wantedPorts() {
  const text = process.env.PORT;
  if (!text) return Array.from({ length: kPortsTried }, (_, i) => kFirstPort + i);
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new SetupError(`PORT must be a whole number from 0 to 65535, got ${text}`);
  }
  return [port];
}
