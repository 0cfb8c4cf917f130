// The instrument: every view of the run, the model and the cell in focus, around one store of choices and one of results.
import { render } from 'preact';
import { useLayoutEffect, useMemo, useReducer, useState } from 'preact/hooks';
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

/** @typedef {{ drawMap: () => void, redraw: () => void, complete: () => void }} Wires */

/** One part more in each task, from the top: all at once they would hold the page up. @param {{ app: App, wires: Wires }} props */
function Instrument({ app, wires }) {
  const [version, redraw] = useReducer((/** @type {number} */ count) => count + 1, 0);
  const parts = useMemo(() => partsOf(app, wires), [version]);
  const [count, setCount] = useState(1);
  useLayoutEffect(() => {
    wires.redraw = () => {
      redraw(undefined);
      wires.drawMap();
    };
  }, []);
  useLayoutEffect(() => {
    if (count < parts.length) setTimeout(() => setCount(count + 1));
    else wires.complete();
  }, [count]);
  return <div class="instrument-grid">{parts.slice(0, count)}</div>;
}

/** @param {App} app @param {Wires} wires */
function partsOf(app, wires) {
  const onMap = (/** @type {() => void} */ draw) => {
    wires.drawMap = draw;
  };
  return [
    <div key="head" class="head-line">
      <Legend app={app} />
      <RunLine app={app} />
    </div>,
    <TokenStrip key="tokens" app={app} />,
    <HeadGrid key="heads" app={app} />,
    <MapFigure key="map" app={app} onMap={onMap} />,
    <RowPanel key="row" app={app} />,
    <NextTokens key="next" app={app} />,
    <Folds key="folds" app={app} />,
  ];
}

/** @param {{ app: App }} props */
function Folds({ app }) {
  const { model } = useStore(app.store, 'model');
  const isLanguage = model !== 'untrained';
  return (
    <div class="folds">
      {isLanguage && <WritingPanel app={app} />}
      {isLanguage && <LensPanel app={app} />}
      <TakeAway app={app} />
    </div>
  );
}

/** @param {App} app @returns {Promise<() => void>} once it is complete: draws all again, in the colours of another theme */
export async function mountInstrument(app) {
  /** @type {Wires} */
  const wires = { drawMap() {}, redraw() {}, complete() {} };
  await new Promise((resolve) => {
    wires.complete = () => setTimeout(resolve);
    render(<Instrument app={app} wires={wires} />, byId('instrument'));
  });
  render(<WhatIf app={app} />, byId('what-if'));
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') app.store.set({ locked: false, peek: null });
  });
  return () => wires.redraw();
}
