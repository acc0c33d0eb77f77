// Server time, measured. The local wall clock is never read: a sale starts when
// the server says so, and the monotonic clock carries that forward.

export const SAMPLES = 5;
export const GAP_MS = 120; // between samples: lets a burst on the line pass
export const ROUND_MS = 120_000; // a quartz is off by 12 ms at most then
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

export class ServerClock {
  // fetchTime asks the server for {now_ms}; mono is a monotonic clock in ms.
  constructor(fetchTime, mono = () => performance.now()) {
    this.fetchTime = fetchTime;
    this.mono = mono;
    this.best = null;
    this.rough = null;
  }

  get ready() {
    return this.best !== null || this.rough !== null;
  }

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
        this.best = better(this.best, sampleOf(sentAt, receivedAt, nowMs), receivedAt);
      } catch {
        continue;
      }
    }
    return this.best !== null;
  }
}
