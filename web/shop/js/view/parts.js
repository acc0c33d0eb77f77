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

// picture shows the product, or its initials on a coloured ground where there
// is no picture or it cannot be had. It is decoration: the name stands beside it.
export function picture(app, product, extra = '') {
  const box = h('div', { class: `art hue-${product.id % HUES} ${extra}`, 'aria-hidden': 'true' }, initials(product.name));
  const src = pictureAddress(product.image_url, app.api.base);
  if (!src) return box;
  const img = h('img', { alt: '', decoding: 'async', referrerpolicy: 'no-referrer' });
  img.addEventListener('load', () => box.replaceChildren(img), { once: true });
  img.src = src;
  return box;
}

// pictureAddress takes a path as one of the API's own server.
export function pictureAddress(imageURL, base) {
  try {
    const url = new URL(imageURL, base);
    return imageURL && (url.protocol === 'https:' || url.protocol === 'http:') ? url.href : '';
  } catch {
    return '';
  }
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
// and at the instant itself, as close as timers allow; and when the page is
// seen again, because timers of hidden pages are late.
export function everySecond(clock, target, tick, signal) {
  let timer = 0;
  const step = () => {
    clearTimeout(timer);
    if (signal.aborted) return;
    tick();
    const left = target() - clock.now();
    const toNext = left > 0 ? left % 1000 || 1000 : 1000;
    timer = setTimeout(step, Math.min(1000, toNext) + 1);
  };
  document.addEventListener('visibilitychange', step, { signal });
  clock.addEventListener('change', step, { signal });
  step();
}
