// The buyer's orders, newest first.

import { h, setText } from '../dom.js';
import { dateTime, money, shortCountdown } from '../format.js';
import { everySecond, load } from './parts.js';
import { about, waitSeen } from '../wait.js';

const REFRESH_MS = 15_000;

export function ordersView(app, signal) {
  const list = h('div', {});
  if (app.session.signedIn) {
    list.append(h('p', { class: 'note' }, app.say('loading')));
    follow(app, list, signal).catch(() => {});
  } else {
    list.append(h('p', { class: 'empty' }, app.say('orders_signed_out')));
  }
  return h('section', {}, h('h1', { tabindex: -1 }, app.say('orders')), list);
}

async function follow(app, list, signal) {
  for (;;) {
    const { orders, partial } = await load(app, list, signal, () => app.api.orders(signal));
    const drawn = new AbortController();
    const focused = document.activeElement?.getAttribute('href');
    list.replaceChildren(
      partial ? h('p', { class: 'note', id: 'orders-partial', role: 'status' }, app.say('orders_partial')) : '',
      orders.length === 0 ? none(app) : h('ul', { class: 'cards' }, orders.map((o) => card(app, o, drawn.signal))));
    if (focused) list.querySelector(`a[href="${focused}"]`)?.focus();
    try {
      await waitSeen(about(REFRESH_MS), signal);
    } finally {
      drawn.abort();
    }
  }
}

function none(app) {
  return h('div', { class: 'empty' },
    h('p', {}, app.say('no_orders')),
    h('a', { class: 'button', href: '#/' }, app.say('see_sale')));
}

function card(app, order, signal) {
  const { locale } = app.speech;
  const due = Date.parse(order.status === 'pending' ? order.pay_before ?? '' : '');
  const left = h('p', { class: 'when pay-left' });
  if (!Number.isNaN(due)) {
    everySecond(app.clock, () => due, () => setText(left, app.say('pay_left', { time: shortCountdown(due - app.clock.now()) })), signal);
  }
  return h('li', {},
    h('a', { class: 'card order-card', href: `#/orders/${order.order_no}` },
      h('div', { class: 'card-text' },
        h('h2', {}, order.product_name, order.quantity > 1 ? ` × ${order.quantity}` : ''),
        h('p', { class: 'quiet' }, dateTime(order.created_at, locale)), left),
      h('div', { class: 'card-end' },
        h('strong', {}, money(order.amount_cents, order.currency, locale)),
        h('span', { class: 'badge', 'data-status': order.status }, app.say(`s_${order.status}`)))));
}
