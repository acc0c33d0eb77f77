// Pieces that several views draw.

import { h } from '../dom.js';
import { initials, moneyParts } from '../format.js';
import { backoff, waitSeen } from '../wait.js';

const HUES = 6; // classes hue-0 … hue-5 of the style sheet
const LOAD_BASE_MS = 1_000;
const LOAD_CAP_MS = 15_000;

export const RANK = { on_sale: 0, upcoming: 1, paused: 2, sold_out: 3, ended: 4 };

// statusAt is what the product is at server time now: the server's word, moved
// on over the window's edges without asking it again.
export function statusAt(product, now) {
  if (product.status === 'ended' || now >= Date.parse(product.ends_at)) return 'ended';
  if (product.status === 'paused') return 'paused';
  if (now < Date.parse(product.starts_at)) return 'upcoming';
  return product.status === 'sold_out' ? 'sold_out' : 'on_sale';
}

export function art(product, extra = '') {
  return h('div', { class: `art hue-${product.id % HUES} ${extra}`, 'aria-hidden': 'true' }, initials(product.name));
}

// price sets the symbol and the fraction smaller than the figure.
export function price(cents, currency, locale) {
  const small = new Set(['currency', 'decimal', 'fraction']);
  return h('span', { class: 'price' },
    moneyParts(cents, currency, locale).map(({ type, value }) => (small.has(type) ? h('small', {}, value) : value)));
}

export function fact(name, ...value) {
  return h('div', {}, h('dt', {}, name), h('dd', {}, ...value));
}

// load calls ask until it answers, saying so in box meanwhile. A problem that
// asking again cannot mend is thrown.
export async function load(app, box, signal, ask) {
  for (let tries = 0; ; tries++) {
    try {
      return await ask();
    } catch (err) {
      if (signal.aborted || err.code === 'not_found' || err.code === 'unauthenticated') throw err;
      box.replaceChildren(h('p', { class: 'note', role: 'status' }, app.say('load_failed')));
      await waitSeen(Math.max(err.retryAfterMs ?? 0, backoff(tries, LOAD_BASE_MS, LOAD_CAP_MS)), signal);
    }
  }
}

// everySecond calls tick at each full second of the given instant's countdown
// and at the instant itself, as close as timers allow.
export function everySecond(clock, target, tick, signal) {
  const step = () => {
    if (signal.aborted) return;
    tick();
    const left = target() - clock.now();
    const toNext = left > 0 ? left % 1000 || 1000 : 1000;
    setTimeout(step, Math.min(1000, toNext) + 1);
  };
  step();
}
