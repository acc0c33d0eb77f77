// Server time, measured. The local wall clock never counts: a sale starts when
// the server says so, and the monotonic clock carries that forward. Only that
// the two local clocks part is noticed, and is a reason to measure again.

export const SAMPLES = 5;
export const GAP_MS = 120; // between samples: lets a burst on the line pass
export const ROUND_MS = 120_000; // a quartz is off by 12 ms at most then
const STEP_MS = 1_000;
const DRIFT = 1e-4; // how fast a quartz may be off: 100 ppm, generously

// sampleOf places the server's now in the middle of the round trip, so the
// error is at most half of it.
export function sampleOf(sentAt, receivedAt, nowMs) {
  const rtt = receivedAt - sentAt;
  return { at: receivedAt, rtt, offset: nowMs + rtt / 2 - receivedAt };
}

// better decides which of two samples to trust at the given monotonic time.
// Two that contradict each other mean a clock was stepped or the device slept:
// the newer one is right.
export function better(old, sample, at) {
  if (!old) return sample;
  const oldError = old.rtt / 2 + (at - old.at) * DRIFT;
  const newError = sample.rtt / 2;
  const contradict = Math.abs(sample.offset - old.offset) > oldError + newError;
  return contradict || newError <= oldError ? sample : old;
}

// stepped reports whether the two local clocks moved apart: somebody set the
// device's time, or it slept and its monotonic clock stood still.
export function stepped(before, after) {
  return Math.abs((after.wall - before.wall) - (after.mono - before.mono)) > STEP_MS;
}

// ServerClock tells of each correction by an event "change".
export class ServerClock extends EventTarget {
  // fetchTime asks the server for {now_ms}; mono is a monotonic clock in ms.
  constructor(fetchTime, mono = () => performance.now()) {
    super();
    this.fetchTime = fetchTime;
    this.mono = mono;
    this.best = null;
    this.rough = null;
  }

  get ready() {
    return this.best !== null || this.rough !== null;
  }

  // exact: measured, not only hinted at.
  get exact() { return this.best !== null; }

  now() {
    return this.mono() + (this.best?.offset ?? this.rough ?? 0);
  }

  // hint takes the now_ms of any other answer. It may have aged in a cache, so
  // it serves only until the first real sample.
  hint(nowMs) {
    if (Number.isFinite(nowMs) && nowMs > 0) this.rough = nowMs - this.mono();
  }

  // sync takes a round of samples. Lost ones are skipped: the best of what
  // arrived is still right within half its round trip.
  async sync(pause, samples = SAMPLES) {
    for (let i = 0; i < samples; i++) {
      if (i > 0) await pause(GAP_MS);
      try {
        const sentAt = this.mono();
        const { now_ms: nowMs } = await this.fetchTime();
        const receivedAt = this.mono();
        if (!Number.isFinite(nowMs)) continue;
        this.take(better(this.best, sampleOf(sentAt, receivedAt, nowMs), receivedAt));
      } catch {
        continue;
      }
    }
    return this.best !== null;
  }

  take(sample) {
    if (sample === this.best) return;
    this.best = sample;
    this.dispatchEvent(new Event('change'));
  }
}
