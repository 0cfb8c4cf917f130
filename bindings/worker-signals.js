// One listener for each signal, however many calls it may stop: engines warn of many.

export class Signals {
  /** @type {Map<AbortSignal, { stops: Set<() => void>, listener: () => void }>} */
  #watched = new Map();

  /**
   * @param {AbortSignal} signal @param {() => void} stop called when it fires
   * @returns {() => void} forgets `stop`, and with the last of them the listener
   */
  watch(signal, stop) {
    const { stops } = this.#watched.get(signal) ?? this.#listen(signal);
    stops.add(stop);
    return () => {
      if (stops.delete(stop) && stops.size === 0) this.#forget(signal);
    };
  }

  /** @param {AbortSignal} signal */
  #listen(signal) {
    /** @type {Set<() => void>} */
    const stops = new Set();
    const listener = () => {
      for (const stop of [...stops]) stop();
    };
    const watched = { stops, listener };
    this.#watched.set(signal, watched);
    signal.addEventListener('abort', listener);
    return watched;
  }

  /** @param {AbortSignal} signal */
  #forget(signal) {
    const watched = this.#watched.get(signal);
    this.#watched.delete(signal);
    if (watched) signal.removeEventListener('abort', watched.listener);
  }
}
