// One order, as it changes: queued, to be paid, paid, or let go.

import { fill, pageAddress } from '../address.js';
import { dropOrder, keepOrder } from '../purchase.js';
import { h, icon, setText } from '../dom.js';
import { dateTime, money, shortCountdown } from '../format.js';
import { everySecond, fact } from './parts.js';
import { confirmBox } from './confirm.js';
import { isSettled, watchOrder } from '../watch.js';

const STEPS = ['queued', 'pending', 'paid'];
const LIVE = new Set(STEPS);
const ICONS = {
  queued: 'M12 7v5l3 2 M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18',
  pending: 'M4 7h16v11H4z M4 11h16 M8 15h3',
  paid: 'M5 12.5l4.5 4.5L19 7.5',
  cancelled: 'M7 7l10 10 M17 7L7 17',
  failed: 'M12 6v7 M12 17v.5',
  refunded: 'M9 8H5V4 M5.5 8A8 8 0 1 1 4 13',
};
// What the server says of a link that is no longer good.
const LINK_OVER = new Set(['unauthenticated', 'token_invalid', 'bad_request']);
// Where a payment may lead: a web page, or a wallet's own app.
const PAY_SCHEMES = new Set(['https:', 'http:', 'weixin:', 'alipays:']);

export function orderView(app, signal, no, query) {
  return new OrderView(app, signal, no, query.get('link') ?? '').root;
}

class OrderView {
  // link is what an order is read with where its buyer is not signed in: a
  // payment app may come back in another browser. It can only look.
  constructor(app, signal, no, link) {
    Object.assign(this, { app, signal, no, link });
    this.onlyLooks = !app.session.signedIn;
    this.body = h('div', {});
    this.root = h('section', { class: 'order' },
      this.onlyLooks ? '' : h('a', { class: 'back', href: '#/orders' }, icon('M15 5l-7 7 7 7'), app.say('orders')),
      h('h1', { class: 'unseen', tabindex: -1 }, app.say('order')), this.body);
    if (app.session.signedIn || link) this.start();
    else this.instead('order_signed_out');
  }

  // instead says why there is no order to see.
  instead(words) {
    this.body.replaceChildren(h('p', { class: 'empty' }, this.app.say(words)));
  }

  start() {
    const { app, signal } = this;
    this.body.replaceChildren(h('p', { class: 'note' }, app.say('loading')));
    everySecond(app.clock, () => Date.parse(this.order?.pay_before ?? ''), () => this.tick(), signal);
    this.follow();
  }

  follow() {
    const { app: { api }, no, link, signal } = this;
    const source = this.onlyLooks
      ? { read: () => api.linkedOrder(no, link, signal), stream: (take) => api.orderEvents(no, take, signal, link) }
      : { read: () => api.order(no, signal), stream: (take) => api.orderEvents(no, take, signal) };
    return watchOrder(source, { signal, onOrder: (o) => this.take(o), onTrouble: (err) => this.trouble(err) });
  }

  take(order) {
    if (this.signal.aborted) return;
    if (!this.onlyLooks) this.note(order);
    const changed = JSON.stringify(order) !== JSON.stringify(this.order);
    if (order.status !== this.order?.status) this.app.announce(this.words(order.status).join(' '));
    this.order = order;
    if (order.status === 'pending' && !this.onlyLooks) {
      this.learnProviders();
      this.learnCashier();
    }
    if (changed) this.draw();
  }

  // note remembers on this device what stands for the product.
  note({ status, product_id: productId, order_no: orderNo }) {
    const { buyer } = this.app.session;
    if (LIVE.has(status)) keepOrder(buyer, productId, orderNo);
    else dropOrder(buyer, productId, orderNo);
  }

  trouble(err) {
    const gone = err.code === 'not_found';
    if (gone && !this.onlyLooks && this.link) { // another's login: the link still shows it
      this.onlyLooks = true;
      this.follow();
    } else if (gone || this.onlyLooks && LINK_OVER.has(err.code)) {
      this.instead(this.app.session.signedIn ? 'order_not_found' : 'link_over');
      this.app.askSignIn('sign_in_order');
    } else if (this.order) {
      this.tell(this.app.say('load_failed'));
    } else {
      this.body.replaceChildren(h('p', { class: 'note', role: 'status' }, this.app.say('load_failed')));
    }
  }

  // learnProviders asks the product how it can be paid; the order does not say.
  async learnProviders() {
    if (this.providers) return;
    this.providers = ['sandbox'];
    try {
      const { payment_providers: known, now_ms: nowMs } = await this.app.api.product(this.order.product_id, this.signal);
      this.app.clock.hint(nowMs);
      if (!Array.isArray(known) || String(known) === String(this.providers)) return; // no redraw under a finger
      this.providers = known;
      this.draw();
    } catch {
      // The default stands; a wrong one is answered by the payment itself.
    }
  }

  // learnCashier asks whether the shop takes the money itself.
  async learnCashier() {
    if (this.cashier !== undefined) return;
    this.cashier = '';
    await this.app.learnPage();
    const { payURL } = this.app.page;
    if (!payURL || this.signal.aborted) return;
    // The cashier may lead back into another browser: the link shows the order there.
    const { link = '' } = this.order;
    const back = `${pageAddress(location)}#/orders/${this.no}${link && `?link=${link}`}`;
    this.cashier = fill(payURL, { order_no: this.no, return: back }, location.href);
    this.draw();
  }

  get overdue() {
    const { status, pay_before: payBefore } = this.order;
    return status === 'pending' && payBefore != null && this.app.clock.ready && this.app.clock.now() >= Date.parse(payBefore);
  }

  draw() {
    const { app, order } = this;
    const { locale } = app.speech;
    const focused = document.activeElement?.id;
    this.wasOverdue = this.overdue;
    this.line = h('p', { class: 'message', role: 'status', 'data-tone': 'warm' });
    this.body.replaceChildren(
      this.drawSteps(),
      h('div', { class: 'sheet hero', 'data-status': order.status, id: 'order' }, this.drawHero(), this.drawActions(), this.line),
      h('dl', { class: 'facts sheet' },
        fact(app.say('product'), h('a', { href: `#/products/${order.product_id}` }, order.product_name)),
        order.status === 'pending' && order.pay_before && fact(app.say('pay_before'), dateTime(order.pay_before, locale)),
        fact(app.say('quantity'), String(order.quantity)),
        fact(app.say('amount'), money(order.amount_cents, order.currency, locale)),
        fact(app.say('created_at'), dateTime(order.created_at, locale)),
        fact(app.say('order_no'), h('code', {}, order.order_no))));
    document.title = `${app.say(`s_${order.status}`)} · ${order.product_name}`;
    if (focused) document.getElementById(focused)?.focus();
    this.tick();
  }

  drawSteps() {
    const at = STEPS.indexOf(this.order.status);
    if (at < 0) return '';
    return h('ol', { class: 'progress' }, STEPS.map((step, i) =>
      h('li', { class: i < at || step === 'paid' && at === i ? 'done' : '', 'aria-current': i === at && 'step' }, this.app.say(`step_${step}`))));
  }

  // words are heading and sentence for a status; one that the page does not
  // know stands as the server wrote it.
  words(name) {
    const { speech, say } = this.app;
    return speech.has(`h_${name}`) ? [say(`h_${name}`), say(`t_${name}`)] : [name, ''];
  }

  drawHero() {
    const { order } = this;
    const name = this.overdue ? 'due' : order.status;
    const [heading, sentence] = this.words(name);
    this.left = name === 'pending' ? h('strong', { class: 'left', role: 'timer', 'aria-live': 'off' }) : null;
    return h('div', { class: 'hero-text' },
      h('span', { class: 'seal' }, icon(ICONS[order.status] ?? ICONS.queued)),
      h('h2', {}, heading),
      h('p', {}, sentence),
      this.left,
      order.reason ? h('p', { class: 'reason' }, this.reason()) : '');
  }

  // reason translates the engine's own; an operator's words stand as written.
  reason() {
    const key = `r_${this.order.reason}`;
    return this.app.speech.has(key) ? this.app.say(key) : this.order.reason;
  }

  drawActions() {
    const { app, order } = this;
    if (this.onlyLooks) return isSettled(order) ? '' : h('p', { class: 'note', id: 'only-looks' }, app.say('only_looks'));
    if (isSettled(order)) {
      return h('div', { class: 'actions' }, h('a', { class: 'button plain', href: '#/' }, app.say('see_sale')));
    }
    if (order.status !== 'pending' || this.overdue) return '';
    const amount = money(order.amount_cents, order.currency, app.speech.locale);
    const providers = this.providers ?? ['sandbox'];
    const several = providers.length + (this.cashier ? 1 : 0) > 1;
    const label = (provider) => (several ? app.say('pay_with', { provider: this.providerName(provider) }) : app.say('pay', { amount }));
    return h('div', { class: 'actions' },
      this.cashier ? h('a', { class: 'button lit', id: 'pay-shop', href: this.cashier }, label('shop')) : '',
      providers.length === 0 && !this.cashier ? h('p', { class: 'note', id: 'pay-elsewhere' }, app.say('pay_elsewhere')) : '',
      providers.map((provider) => h('button', {
        class: 'button lit', id: `pay-${provider}`, type: 'button', onclick: () => this.pay(provider),
      }, label(provider))),
      h('button', { class: 'link', id: 'cancel', type: 'button', onclick: () => this.cancel() }, app.say('cancel')));
  }

  providerName(provider) {
    const key = `p_${provider}`;
    return this.app.speech.has(key) ? this.app.say(key) : provider;
  }

  // tick moves the time to pay; when it runs out the buttons go with it.
  tick() {
    if (!this.order || !this.left) return;
    if (this.overdue !== this.wasOverdue) {
      this.draw();
      return;
    }
    const ms = Date.parse(this.order.pay_before ?? '') - this.app.clock.now();
    setText(this.left, Number.isNaN(ms) || !this.app.clock.ready ? '' : shortCountdown(ms));
    this.left.classList.toggle('soon', ms < 60_000);
  }

  tell(text) {
    if (this.line) setText(this.line, text);
  }

  async pay(provider) {
    await this.act('pay_going', 'pay_failed', async () => {
      const { pay_url: payURL } = await this.app.api.pay(this.no, provider, this.signal);
      const url = new URL(payURL, location.href);
      if (!PAY_SCHEMES.has(url.protocol)) throw new Error('unexpected payment address');
      location.assign(url.href);
    });
  }

  async cancel() {
    if (!(await confirmBox(this.app, 'cancel', this.signal))) return;
    await this.act('', 'cancel_failed', async () => {
      await this.app.api.cancel(this.no, this.signal);
      this.take(await this.app.api.order(this.no, this.signal));
    });
  }

  // act runs one move of the order with its buttons held, then shows the order
  // as it is now if the move was no longer possible.
  async act(going, failed, move) {
    const buttons = this.root.querySelectorAll('.actions button');
    buttons.forEach((b) => { b.disabled = true; });
    this.tell(going ? this.app.say(going) : '');
    try {
      await move();
    } catch (err) {
      if (this.signal.aborted) return;
      if (err.code === 'wrong_state') {
        await this.app.api.order(this.no, this.signal).then((o) => this.take(o), () => {});
      }
      this.tell(this.app.say(err.code === 'wrong_state' ? 'e_wrong_state' : failed));
    } finally {
      buttons.forEach((b) => { b.disabled = false; });
    }
  }
}
