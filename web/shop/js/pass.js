// The purchase token: what stands between a press and a purchase where the
// shop asks for it. It is fetched ahead of the start, renewed before it runs
// out, and taken by the press.

import { forget, recall, remember } from './memory.js';
import { prove } from './prove.js';
import { backoff, stopped, waitSeen } from './wait.js';

const WORK = 'seckill_work'; // set by shoppers who let the device work instead of reading pictures

// Everybody may ask from the same instant on, so each waits at random: over
// half of the time until the start, 20 s at most.
const OPEN_SPREAD_MS = 20_000;
const RENEW_MS = 15_000; // before the end; as much again at random
const FRESH_MS = 3_000; // a token with less than this left is not begun with
const LOOK_MS = 5_000; // how often the plan is looked at: windows move
const RETRY_BASE_MS = 2_000;
const RETRY_CAP_MS = 30_000;
const MACHINE_TRIES = 3;

// dueAt is when a token should be asked for, in ms of server time: chance is
// this shopper's own number between 0 and 1.
export function dueAt(product, held, chance) {
  if (held) {
    const life = held.until - held.from;
    return held.until - Math.min(RENEW_MS * (1 + chance), life / 3);
  }
  const opens = Date.parse(product.token_opens_at ?? '');
  if (Number.isNaN(opens)) return Infinity; // only a press asks
  const starts = Date.parse(product.starts_at);
  return opens + chance * Math.min(OPEN_SPREAD_MS, Math.max(0, starts - opens) / 2);
}

// Pass is one buyer's token for one product. Its state is what a person sees:
//   idle · fetching · working {share, canRead} · picture {image, canWork, wrong, stale}
//   · shop {url, id, wrong, stale} · later · ready
export class Pass {
  constructor(api, clock, productId, { onChange, signal, random = Math.random, work = prove }) {
    Object.assign(this, { api, clock, productId, onChange, signal, work });
    this.chance = random();
    this.held = null; // {token, from, until}
    this.running = null; // the attempt under way
    this.person = null; // who waits for a person's answer
    this.state = { kind: 'idle' };
  }

  get ready() { return this.held !== null && this.held.until - this.clock.now() > FRESH_MS; }

  enter(state) {
    this.state = state;
    if (!this.signal.aborted) this.onChange(state);
  }

  // keep has a token ready as long as wanted() says so.
  async keep(product, wanted) {
    for (let tries = 0; ;) {
      const left = dueAt(product(), this.held, this.chance) - this.clock.now();
      if (left > 0 || !wanted()) {
        await waitSeen(Math.min(LOOK_MS, left > 0 ? left : LOOK_MS), this.signal);
        continue;
      }
      try {
        await this.attempt();
        tries = 0;
        await waitSeen(RETRY_BASE_MS, this.signal); // whatever the token says of its end
      } catch (err) {
        if (this.signal.aborted) return;
        await waitSeen(Math.max(err.retryAfterMs ?? 0, backoff(tries++, RETRY_BASE_MS, RETRY_CAP_MS)), this.signal);
      }
    }
  }

  // take gives the token, now or when the challenge is answered.
  async take(signal) {
    if (this.ready) return this.held.token;
    const leave = new Promise((_, reject) => signal.addEventListener('abort', () => reject(stopped()), { once: true }));
    await Promise.race([this.attempt(), leave]);
    return this.held.token;
  }

  // spend forgets a token that may have become an order.
  spend(token) {
    if (token && this.held?.token === token) {
      this.held = null;
      this.enter({ kind: 'idle' });
    }
  }

  attempt() {
    this.running ??= this.obtain().finally(() => { this.running = null; });
    return this.running;
  }

  async obtain() {
    try {
      let wrong = 0; // answers that were not taken
      for (;;) {
        this.enter({ kind: 'fetching' });
        const challenge = await this.api.challenge(this.productId, this.works ? { type: 'pow' } : {}, this.signal);
        const answer = await this.solve(challenge, wrong > 0);
        if (answer === AGAIN) wrong = 0;
        else if (await this.exchange(challenge, answer)) return;
        // A person may try as many pictures as the server gives; a device's
        // answer is refused only when its work took too long.
        else if (++wrong >= MACHINE_TRIES && !PERSONAL.has(challenge.type)) throw failed('challenge');
      }
    } catch (err) {
      this.enter({ kind: this.ready ? 'ready' : LATER.has(err.code) ? 'later' : 'idle' });
      throw err;
    }
  }

  // exchange reports whether the answer was taken.
  async exchange(challenge, answer) {
    try {
      const body = { challenge_id: challenge.challenge_id, answer };
      const { token, expires_at: expiresAt } = await this.api.token(this.productId, body, this.signal);
      this.held = { token, from: this.clock.now(), until: Date.parse(expiresAt) };
      this.enter({ kind: 'ready' });
      return true;
    } catch (err) {
      if (err.code === 'token_invalid') return false;
      throw err;
    }
  }

  solve(challenge, wrong) {
    switch (challenge.type) {
      case 'none': return '';
      case 'pow': return this.letDevice(challenge);
      case 'image': return this.askPerson(challenge, {
        kind: 'picture', image: challenge.image, canWork: Boolean(challenge.alternatives?.includes('pow')), wrong,
      });
      case 'shop': return this.askPerson(challenge, { kind: 'shop', url: challenge.widget_url ?? '', id: challenge.challenge_id, wrong });
      default: throw failed('unknown_challenge');
    }
  }

  // letDevice works on the answer, unless the shopper rather reads a picture.
  async letDevice(challenge) {
    const cut = new AbortController();
    const stop = () => cut.abort();
    this.signal.addEventListener('abort', stop);
    this.person = stop;
    const working = (share) => this.enter({ kind: 'working', share, canRead: this.works });
    try {
      working(0);
      return await this.work(challenge, working, cut.signal);
    } catch (err) {
      if (cut.signal.aborted && !this.signal.aborted) return AGAIN;
      throw err;
    } finally {
      this.signal.removeEventListener('abort', stop);
      this.person = null;
    }
  }

  // askPerson waits for answer, another or letWork. A challenge that runs out
  // meanwhile says so and waits on: nobody may be looking.
  askPerson(challenge, state) {
    const left = Date.parse(challenge.expires_at ?? '') - this.clock.now();
    const timer = left > 0 ? setTimeout(() => this.enter({ ...state, stale: true }), left) : 0;
    return new Promise((resolve, reject) => {
      const onStop = () => reject(stopped());
      this.signal.addEventListener('abort', onStop, { once: true });
      this.person = (answer) => {
        this.person = null;
        clearTimeout(timer);
        this.signal.removeEventListener('abort', onStop);
        resolve(answer);
      };
      this.enter(state);
    });
  }

  answer(text) { this.person?.(text); }
  another() { this.person?.(AGAIN); }

  // works is set by whoever cannot read the picture. It is remembered: they
  // will not be able to read the next one either.
  get works() { return recall(WORK) !== null; }

  letWork() {
    remember(WORK, '1');
    this.another();
  }

  letRead() {
    forget(WORK);
    this.another();
  }
}

const AGAIN = Symbol('another challenge');
const PERSONAL = new Set(['image', 'shop']);
const LATER = new Set(['rate_limited', 'busy', 'too_hot', 'offline']);
const failed = (code) => Object.assign(new Error(code), { code });
