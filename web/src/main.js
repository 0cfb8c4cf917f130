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
  if (isStored(store.state)) {
    store.set(existing(store.state, storedRun, false));
    shown.set(storedExample(store.state));
  }

  const engine = createEngine();
  const session = createSession(store, shown, engine, { scores: storedScores, matrixOf: storedMatrix });
  const redraw = mountInstrument({ store, shown, session });
  createThemeSwitch(redraw);
  performance.mark('painted');

  createOwnModel(async (files) => {
    if (await session.openOwn(files)) controls.offerOwn();
    controls.show(store.state);
  });
  store.subscribe((state, changed) => {
    if (changed.has('locked') || kSettings.some((name) => changed.has(name))) {
      controls.show(state);
      writeAddress.ask(state);
    }
  });
  window.addEventListener('hashchange', () => store.set({ locked: false, ...settingsFromHash(location.hash) }));
  const ready = session.start();
  // The example is painted before the lesson comes.
  const lesson = import('./lesson/lesson.jsx').then(({ showLesson }) => {
    showLesson({ store, engine, ready, run: () => session.run });
  });
  await Promise.all([ready, lesson]);
  keepOffline();
  return session;
}

/** Once the reader pauses: browsers limit how often the address may change. */
const writeAddress = afterPause(kPause, (/** @type {State} */ state) => {
  history.replaceState(null, '', `${location.pathname}${location.search}${hashFromSettings(state)}`);
});

// Read by the tests, and by anyone with a console: the state behind the picture.
Object.assign(window, { attentionPage: await start() });
