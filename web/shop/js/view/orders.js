// The buyer's orders, newest first.

import { h } from '../dom.js';
import { dateTime, money } from '../format.js';
import { load } from './parts.js';
import { waitSeen } from '../wait.js';

const REFRESH_MS = 15_000;

export function ordersView(app, signal) {
  const list = h('div', {});
  if (app.session.signedIn) {
    list.append(h('p', { class: 'note' }, app.say('loading')));
    follow(app, list, signal).catch(() => {});
  }
  return h('section', {}, h('h1', { tabindex: -1 }, app.say('orders')), list);
}

async function follow(app, list, signal) {
  for (;;) {
    const { orders } = await load(app, list, signal, () => app.api.orders(signal));
    const focused = document.activeElement?.getAttribute('href');
    list.replaceChildren(orders.length === 0 ? none(app) : h('ul', { class: 'cards' }, orders.map((o) => card(app, o))));
    if (focused) list.querySelector(`a[href="${focused}"]`)?.focus();
    await waitSeen(REFRESH_MS * (0.8 + Math.random() * 0.4), signal);
  }
}

function none(app) {
  return h('div', { class: 'empty' },
    h('p', {}, app.say('no_orders')),
    h('a', { class: 'button', href: '#/' }, app.say('see_sale')));
}

function card(app, order) {
  const { locale } = app.speech;
  return h('li', {},
    h('a', { class: 'card order-card', href: `#/orders/${order.order_no}` },
      h('div', { class: 'card-text' },
        h('h2', {}, order.product_name, order.quantity > 1 ? ` × ${order.quantity}` : ''),
        h('p', { class: 'quiet' }, dateTime(order.created_at, locale))),
      h('div', { class: 'card-end' },
        h('strong', {}, money(order.amount_cents, order.currency, locale)),
        h('span', { class: 'badge', 'data-status': order.status }, app.say(`s_${order.status}`)))));
}
