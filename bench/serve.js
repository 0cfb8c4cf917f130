// The child's end of process.js: answers commands of the parent, one after the other.

/** @param {Record<string, (args: any) => any>} commands */
export function serve(commands) {
  process.on('disconnect', () => process.exit()); // the parent is gone; threads of libraries would live on
  process.on('message', async ({ command, args }) => {
    try {
      process.send({ result: await commands[command](args) });
    } catch (error) {
      process.send({ failure: describe(error) });
    }
  });
}

/** Libraries throw strings, objects without a message, and bare numbers, too. */
function describe(error) {
  const text = error instanceof Error || error?.message ? String(error.message) : String(error);
  return text.split('\n')[0].slice(0, 300);
}
