// The instrument: every view of the run, the model and the cell in focus, around one store of choices and one of results.
import { render } from 'preact';
import { useLayoutEffect, useReducer } from 'preact/hooks';
import { byId } from './element.js';
import { HeadGrid } from './head-grid.jsx';
import { Legend } from './legend.jsx';
import { LensPanel } from './lens.jsx';
import { MapFigure } from './map-figure.jsx';
import { NextTokens } from './next-tokens.jsx';
import { RowPanel } from './row-panel.jsx';
import { RunLine } from './run-line.jsx';
import { TakeAway } from './take-away.jsx';
import { TokenStrip } from './token-strip.jsx';
import { useStore } from './use-store.js';
import { WhatIf } from './what-if.jsx';
import { WritingPanel } from './writing.jsx';

/** @import { App } from './use-store.js' */

/** @param {{ app: App, onRedraw: (redraw: () => void) => void }} props */
function Instrument({ app, onRedraw }) {
  const { model } = useStore(app.store, 'model');
  const [, redraw] = useReducer((/** @type {number} */ count) => count + 1, 0);
  let drawMap = () => {};
  useLayoutEffect(() => {
    onRedraw(() => {
      redraw(undefined);
      drawMap();
    });
  }, []);
  const isLanguage = model !== 'untrained';
  return (
    <div class="instrument-grid">
      <div class="head-line">
        <Legend app={app} />
        <RunLine app={app} />
      </div>
      <TokenStrip app={app} />
      <HeadGrid app={app} />
      <MapFigure
        app={app}
        onMap={(draw) => {
          drawMap = draw;
        }}
      />
      <RowPanel app={app} />
      <NextTokens app={app} />
      <div class="folds">
        {isLanguage && <WritingPanel app={app} />}
        {isLanguage && <LensPanel app={app} />}
        <TakeAway app={app} />
      </div>
    </div>
  );
}

/** @param {App} app @returns {() => void} draws all again, in the colours of another theme */
export function mountInstrument(app) {
  /** @type {() => void} */
  let redraw = () => {};
  const onRedraw = (/** @type {() => void} */ action) => {
    redraw = action;
  };
  render(<Instrument app={app} onRedraw={onRedraw} />, byId('instrument'));
  render(<WhatIf app={app} />, byId('what-if'));
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') app.store.set({ locked: false, peek: null });
  });
  return () => redraw();
}
