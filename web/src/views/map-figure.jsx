// The matrix in focus with its title, its tools and the cell in focus in words.
import { useEffect, useRef } from 'preact/hooks';
import { roleOf } from '../roles.js';
import { headName, sameHead } from '../state.js';
import { createFocusMap } from './focus-map.js';
import { partOf, zoomed } from './map-layout.js';
import { Segments, Steps, Switch } from './parts.jsx';
import { useStore } from './use-store.js';
import { formatValue, valueAt, viewName, whyEmpty } from './words.js';

/** @import { HeadName, HeadScores, Matrix } from '../types.js' */
/** @import { App } from './use-store.js' */

/** @param {{ app: App, onMap: (draw: () => void) => void }} props */
export function MapFigure({ app, onMap }) {
  const { store, shown } = app;
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => {
    const map = createFocusMap(/** @type {HTMLElement} */ (place.current), store, shown);
    onMap(map.draw);
    map.draw();
    return map.end;
  }, []);
  return (
    <figure class="focus">
      <figcaption>
        <Title app={app} />
        <Readout app={app} />
      </figcaption>
      <div class="canvases" id="map" ref={place} />
      <MapTools app={app} />
      <ViewOptions app={app} />
      <Averages app={app} />
    </figure>
  );
}

/** @param {{ app: App }} props */
function Title({ app }) {
  const { off, peek } = useStore(app.store, 'off', 'peek');
  const { run, view, scores } = useStore(app.shown, 'run', 'view', 'scores');
  if (!run || !view) return null;
  const head = view.combine === 'one' ? view.of[0] : null;
  const isOff = head && off.some((each) => sameHead(each, head));
  return (
    <p id="head-title" class="head-title">
      <b>{viewName(view, run)}</b>
      {head && scores ? ` · ${roleOf(scores, head)}` : ''}
      {isOff ? ' · off' : ''}
      {view.show === 'scores' ? ' · scores' : view.show === 'change' ? ' · what has changed' : ''}
      {peek && (
        <span class="passing" title="A click keeps it">
          preview
        </span>
      )}
    </p>
  );
}

/** What the label of a head goes by, and what the head does here. @param {{ app: App }} props */
function Averages({ app }) {
  const { run, matrix, view, scores } = useStore(app.shown, 'matrix', 'view', 'scores');
  if (!run || !matrix || view?.combine !== 'one') return null;
  const isWhole = view.show === 'weights' && !view.hideFirst && view.mass === 1;
  const { rows, mean } = isWhole ? copyingIn(run.tokens, matrix) : { rows: 0, mean: 0 };
  return (
    <>
      {scores && (
        <p id="head-scores" class="note number">
          {averagesOf(scores, view.of[0])}
        </p>
      )}
      {rows > 0 && (
        <p id="head-here" class="note number">
          {`On this text ${rows === 1 ? '1 token comes' : `${rows} tokens come`} again; from there ${headName(view.of[0])} gives ${mean.toFixed(2)} to the token behind the former place.`}
        </p>
      )}
    </>
  );
}

/** The mean weight of what followed a token the last time it came. @param {readonly string[]} tokens @param {Matrix} matrix */
function copyingIn(tokens, matrix) {
  /** @type {Map<string, number>} */
  const last = new Map();
  let [rows, sum] = [0, 0];
  tokens.forEach((token, row) => {
    const before = last.get(token);
    last.set(token, row);
    if (before === undefined || before + 1 === row || row < matrix.from) return;
    rows++;
    sum += valueAt(matrix, row, before + 1) || 0;
  });
  return { rows, mean: rows > 0 ? sum / rows : 0 };
}

/** @param {HeadScores} scores @param {HeadName} head */
function averagesOf(scores, [layer, head]) {
  const value = (/** @type {number[][]} */ averages) => averages[layer][head].toFixed(2);
  return (
    `Averages of ${headName([layer, head])}: token before ${value(scores.previous)} · induction ${value(scores.induction)} · ` +
    `itself ${value(scores.itself)} · first ${value(scores.first)}`
  );
}

/** The cell in focus in words. @param {{ app: App }} props */
function Readout({ app }) {
  const { focus, locked } = useStore(app.store, 'focus', 'locked');
  const { run, matrix, view } = useStore(app.shown, 'matrix');
  const { row, column } = focus;
  if (!run || !matrix || !view) {
    return (
      <p class="readout" id="readout" aria-live="polite">
        {run ? 'The text has no tokens yet.' : ''}
      </p>
    );
  }
  const value = valueAt(matrix, row, column);
  return (
    <p class="readout" id="readout" aria-live="polite">
      <b>{viewName(view, run)}</b>
      {` · ${row} “${run.tokens[row]}” asks ${column} “${run.tokens[column]}”: `}
      <b class="number">
        {Number.isNaN(value) ? whyEmpty(matrix, view, row, column).long : formatValue(view.show, value)}
      </b>
      {locked ? ' · locked' : ''}
    </p>
  );
}

/** @param {{ app: App }} props */
function MapTools({ app }) {
  const { store, shown } = app;
  const { combine, zoom, newOnly, locked } = useStore(store, 'combine', 'zoom', 'newOnly', 'locked');
  const { run, matrix, view } = useStore(shown, 'run', 'view');
  if (!run || !matrix || !view) return null;
  const near = (/** @type {number} */ factor) =>
    store.set({ zoom: zoomed(partOf(matrix, store.state.zoom), matrix.columns, store.state.focus, factor) });
  return (
    <div class="map-tools">
      <Segments
        legend="Shown"
        name="show"
        options={[
          { value: /** @type {const} */ ('weights'), label: 'Weights' },
          { value: 'scores', label: 'Scores', isDisabled: combine === 'rollout' },
          { value: 'change', label: 'Change', isDisabled: !run.changed },
        ]}
        value={view.show}
        onChange={(next) => store.set({ show: next })}
      />
      <fieldset class="zoom">
        <legend>Zoom</legend>
        <button type="button" class="plain" aria-label="Zoom out" disabled={!zoom} onClick={() => near(1 / 1.5)}>
          −
        </button>
        <button
          type="button"
          class="plain"
          aria-label="Zoom in"
          disabled={matrix.columns <= 4}
          onClick={() => near(1.5)}
        >
          +
        </button>
        <button type="button" class="plain" disabled={!zoom} onClick={() => store.set({ zoom: null })}>
          Whole
        </button>
      </fieldset>
      <button
        type="button"
        class="plain"
        id="lock"
        aria-pressed={locked}
        onClick={() => store.set({ locked: !locked })}
      >
        Lock the cell
      </button>
      {run.tokens.length > run.prompt && (
        <Switch label="New rows only" isOn={newOnly} onChange={(isOn) => store.set({ newOnly: isOn })} />
      )}
    </div>
  );
}

const kMasses = [0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1];
const kArcs = [0, 1, 2, 3, 5, 8, 12, 20];

/** What tames clutter. @param {{ app: App }} props */
function ViewOptions({ app }) {
  const { store } = app;
  const { range, hideFirst, mass, arcs } = useStore(store, 'range', 'hideFirst', 'mass', 'arcs');
  return (
    <div class="view-options">
      <Switch label="Leave the first token out" isOn={hideFirst} onChange={(isOn) => store.set({ hideFirst: isOn })} />
      <Switch
        label="Colours to each row’s maximum"
        isOn={range === 'row'}
        onChange={(isOn) => store.set({ range: isOn ? 'row' : 'unit' })}
      />
      <Steps
        label="Heaviest weights up to"
        values={kMasses}
        value={mass}
        format={(value) => (value === 1 ? 'all' : `${Math.round(100 * value)} % of a row`)}
        onChange={(value) => store.set({ mass: value })}
      />
      <Steps
        label="Arcs"
        values={kArcs}
        value={arcs}
        format={(value) => (value === 0 ? 'none' : `the ${value} heaviest`)}
        onChange={(value) => store.set({ arcs: value })}
      />
    </div>
  );
}
