// The page: settings → one run in the worker → views. Nothing below knows anything above it.
import { createEngine } from './engine/client.js';
import { storedExample } from './example.js';
import { createSession } from './session.js';
import { createStore, hashFromSettings, kDefaults, settingsFromHash } from './state.js';
import { createControls, createThemeSwitch } from './views/controls.js';
import { createOwnModel } from './views/own-model.js';
import { createViews } from './views/views.js';

/** @import { State, Store } from './state.js' */

/** @type {(keyof State)[]} */
const kRerun = ['model', 'text', 'off', 'heads', 'causal', 'rope', 'seed'];
/** @type {(keyof State)[]} */
const kAddress = [...kRerun, 'at'];

const kPause = 200;

async function start() {
  /** @type {Store} */
  const store = createStore({
    ...settingsFromHash(location.hash),
    focus: { row: Number.POSITIVE_INFINITY, column: 16 }, // the last row, as far as there is one
    locked: false,
  });
  const controls = createControls(store);
  const views = createViews(store);
  createThemeSwitch(views.draw);
  controls.show(store.state);

  const example = storedExample();
  const isStored =
    store.state.model === 'trained' && store.state.text === kDefaults.text && store.state.off.length === 0;
  if (isStored) views.showStored(example);
  performance.mark('painted');

  const engine = createEngine();
  const session = createSession(store, engine, views, example.scores);
  createOwnModel(async (files) => {
    if (await session.openOwn(files)) controls.offerOwn();
    controls.show(store.state);
  });
  store.subscribe((state, changed) => {
    if (kAddress.some((name) => changed.has(name))) {
      controls.show(state);
      writeAddress(state);
    }
    if (kRerun.some((name) => changed.has(name))) session.compute();
    else views.update(changed);
  });
  window.addEventListener('hashchange', () => store.set(settingsFromHash(location.hash)));
  const ready = session.start();
  // The example is painted before the lesson comes.
  const lesson = import('./lesson/lesson.jsx').then(({ showLesson }) => {
    showLesson({ store, engine, ready, run: () => session.run });
  });
  await Promise.all([ready, lesson]);
  return session;
}

/** Once the reader pauses: browsers limit how often the address may change. */
const writeAddress = afterPause(kPause, (/** @type {State} */ state) => {
  history.replaceState(null, '', `${location.pathname}${location.search}${hashFromSettings(state)}`);
});

/**
 * @template T
 * @param {number} milliseconds @param {(value: T) => void} action with the last value
 * @returns {(value: T) => void}
 */
function afterPause(milliseconds, action) {
  let timer = 0;
  return (value) => {
    clearTimeout(timer);
    timer = window.setTimeout(action, milliseconds, value);
  };
}

// Read by the tests, and by anyone with a console: the state behind the picture.
Object.assign(window, { attentionPage: await start() });
