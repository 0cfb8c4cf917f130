// The page: settings → one run in the worker → views. Nothing below knows anything above it.
import { createEngine } from './engine/client.js';
import { isStored, storedExample, storedMatrix, storedRun, storedScores } from './example.js';
import { keepOffline } from './offline.js';
import { afterPause } from './pause.js';
import { createSession } from './session.js';
import { existing, kNothingShown } from './shown.js';
import { createStore, hashFromSettings, kSettings, settingsFromHash } from './state.js';
import { createControls, createThemeSwitch } from './views/controls.js';
import { mountInstrument } from './views/instrument.jsx';
import { createOwnModel } from './views/own-model.js';
import { createProgress } from './views/progress.js';
import { createProseFacts } from './views/prose-facts.js';

/** @import { ShownStore } from './shown.js' */
/** @import { State, Store } from './state.js' */

const kPause = 200;

async function start() {
  /** @type {Store} */
  const store = createStore({
    focus: { row: Number.MAX_SAFE_INTEGER, column: 16 }, // the last row, as far as there is one
    locked: false,
    peek: null,
    ...settingsFromHash(location.hash),
  });
  /** @type {ShownStore} */
  const shown = createStore(kNothingShown);
  const controls = createControls(store, shown);
  controls.show(store.state);
  createProgress(shown);
  createProseFacts(shown);
  store.subscribe((state, changed) => {
    if (changed.has('locked') || kSettings.some((name) => changed.has(name))) {
      controls.show(state);
      writeAddress.ask(state);
    }
  });
  window.addEventListener('hashchange', () => store.set({ locked: false, ...settingsFromHash(location.hash) }));
  const engine = createEngine();
  const session = createSession(store, shown, engine, { scores: storedScores, matrixOf: storedMatrix });
  createOwnModel(async (files) => {
    if (await session.openOwn(files)) controls.offerOwn();
    controls.show(store.state);
  });

  await nextTask();
  if (isStored(store.state)) {
    store.set(existing(store.state, storedRun, false));
    shown.set(storedExample(store.state));
  }
  await nextTask();
  createThemeSwitch(await mountInstrument({ store, shown, session }));
  performance.mark('painted');

  const ready = session.start();
  // The example is painted before the lesson comes.
  const coming = import('./lesson/lesson.jsx').then(({ showLesson }) =>
    showLesson({ store, engine, ready, run: () => session.run }),
  );
  const [lesson] = await Promise.all([coming, ready]);
  keepOffline();
  return Object.assign(session, { lesson });
}

/** All at once, what follows would hold the page up. */
const nextTask = () => new Promise((resolve) => setTimeout(resolve));

/** Once the reader pauses: browsers limit how often the address may change. */
const writeAddress = afterPause(kPause, (/** @type {State} */ state) => {
  history.replaceState(null, '', `${location.pathname}${location.search}${hashFromSettings(state)}`);
});

// Read by the tests, and by anyone with a console: the state behind the picture.
Object.assign(window, { attentionPage: await start() });
