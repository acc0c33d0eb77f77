// The list of what is on sale.

import { h, setText } from '../dom.js';
import { dateTime, shortCountdown } from '../format.js';
import { everySecond, load, picture, price, RANK, statusAt } from './parts.js';
import { about, waitSeen } from '../wait.js';

const REFRESH_MS = 20_000;
const FEW = 4; // so many are shown with large pictures
const DAY_MS = 86_400_000;

export function productsView(app, signal) {
  const list = h('div', {}, h('p', { class: 'note' }, app.say('loading')));
  follow(app, list, signal).catch(() => {});
  return h('section', {}, h('h1', { class: 'unseen', tabindex: -1 }, app.say('nav_sale')), list);
}

async function follow(app, list, signal) {
  for (;;) {
    const { products, now_ms: nowMs, cut } = await load(app, list, signal, () => app.api.products(signal));
    app.clock.hint(nowMs);
    const drawn = new AbortController();
    draw(app, list, products, drawn.signal);
    if (cut) list.append(h('p', { class: 'note', id: 'list-cut' }, app.say('list_cut', { n: products.length })));
    try {
      await waitSeen(about(REFRESH_MS), signal);
    } finally {
      drawn.abort();
    }
  }
}

function draw(app, list, products, signal) {
  if (products.length === 0) {
    list.replaceChildren(h('p', { class: 'empty' }, app.say('no_products')));
    return;
  }
  const rank = (p) => RANK[statusAt(p, app.clock.now())];
  const sorted = [...products].sort((a, b) => rank(a) - rank(b) || Date.parse(a.starts_at) - Date.parse(b.starts_at) || a.id - b.id);
  const focused = document.activeElement?.getAttribute('href');
  list.replaceChildren(h('ul', { class: `cards ${products.length <= FEW ? 'few' : ''}` }, sorted.map((p) => card(app, p, signal))));
  if (focused) list.querySelector(`a[href="${focused}"]`)?.focus();
}

function card(app, product, signal) {
  const badge = h('span', { class: 'badge' });
  const when = h('span', { class: 'when' });
  const paint = () => {
    const now = app.clock.now();
    const status = statusAt(product, now);
    badge.dataset.status = status;
    setText(badge, app.say(status));
    setText(when, status === 'upcoming' ? untilStart(app, product, now) : '');
  };
  everySecond(app.clock, () => Date.parse(product.starts_at), paint, signal);
  return h('li', {},
    h('a', { class: 'card', href: `#/products/${product.id}` },
      picture(app, product),
      h('div', { class: 'card-text' },
        h('h2', {}, product.name),
        h('p', {}, price(product.price_cents, product.currency, app.speech.locale)),
        h('p', { class: 'card-state' }, badge, when))));
}

function untilStart(app, product, now) {
  const left = Date.parse(product.starts_at) - now;
  return left < DAY_MS ? `${app.say('starts_in')} ${shortCountdown(left)}` : dateTime(product.starts_at, app.speech.locale);
}
