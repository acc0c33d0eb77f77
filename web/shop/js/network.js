// Whether the server can be reached: noticed by the requests themselves,
// shown, and healed by asking for the time until it answers.

import { backoff } from './wait.js';

const PROBE_BASE_MS = 1_000;
const PROBE_CAP_MS = 10_000;
const WAKE_SPREAD_MS = 1_000; // when a whole train leaves its tunnel, not all ask at once

export class Network extends EventTarget {
  // probe asks the server for anything; its answer is told to answered like
  // any other.
  constructor(probe, random = Math.random) {
    super();
    Object.assign(this, { probe, random, lost: false, timer: 0 });
  }

  // follow listens to what the device knows by itself.
  follow(window) {
    window.addEventListener('offline', () => this.missed());
    window.addEventListener('online', () => this.lost && this.look(0));
  }

  answered() {
    if (!this.lost) return;
    this.lost = false;
    clearTimeout(this.timer);
    this.dispatchEvent(new Event('change'));
    setTimeout(() => this.lost || this.dispatchEvent(new Event('healed')), this.random() * WAKE_SPREAD_MS);
  }

  missed() {
    if (this.lost) return;
    this.lost = true;
    this.dispatchEvent(new Event('change'));
    this.look(0);
  }

  look(tries) {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      await this.probe().catch(() => {});
      if (this.lost) this.look(tries + 1);
    }, backoff(tries, PROBE_BASE_MS, PROBE_CAP_MS, this.random));
  }
}
