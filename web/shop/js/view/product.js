// One product: the countdown, the button, and what became of the press.

import { dropOrder, lastOrder, Purchase } from '../purchase.js';
import { h, icon, setText } from '../dom.js';
import { countdown, dateTime, money, soonTime } from '../format.js';
import { art, everySecond, fact, load, price, statusAt } from './parts.js';
import { CLOSED, faceOf } from './face.js';
import { isSettled } from '../watch.js';
import { wait, waitSeen } from '../wait.js';

const COOL_MS = 1_000; // after an answer, before the next press counts
// How soon the product is looked at again, by its status; looks without news
// grow rarer, because the whole crowd looks. In the last seconds before the
// start nobody asks anything: the clock alone lights the button.
const LOOK_MS = { upcoming: 60_000, on_sale: 20_000, sold_out: 12_000, paused: 8_000, ended: 60_000 };
const LOOK_GROWTH = 1.5;
const LOOK_CAP_MS = 60_000;
const HUSH_MS = 15_000;

export function productView(app, signal, id) {
  return new ProductView(app, signal, Number(id)).root;
}

class ProductView {
  constructor(app, signal, id) {
    Object.assign(this, { app, signal, id });
    this.root = h('section', { class: 'product' }, h('p', { class: 'note' }, app.say('loading')));
    this.purchase = new Purchase(app.api, app.clock, app.session.buyer);
    this.phase = { kind: 'idle' };
    this.quantity = 1;
    this.mine = app.session.signedIn ? lastOrder(app.session.buyer, id) : null;
    this.start().catch((err) => this.missing(err));
  }

  async start() {
    const { app, signal } = this;
    this.take(await load(app, this.root, signal, () => app.api.product(this.id, signal)));
    this.draw();
    everySecond(app.clock, () => this.edge(), () => this.paint(), signal);
    this.resume();
    this.checkMine();
    await this.follow();
  }

  missing(err) {
    if (this.signal.aborted) return;
    this.root.replaceChildren(
      h('h1', { tabindex: -1 }, this.app.say(err.code === 'not_found' ? 'e_not_found' : 'load_failed')),
      h('a', { class: 'button', href: '#/' }, this.app.say('see_sale')));
  }

  take(product) {
    this.product = product;
    this.app.clock.hint(product.now_ms);
    this.quantity = Math.min(this.quantity, product.per_user_limit);
  }

  get status() { return statusAt(this.product, this.app.clock.now()); }
  // edge is the next end of the window.
  edge() { return Date.parse(this.status === 'upcoming' ? this.product.starts_at : this.product.ends_at); }

  // follow looks at the product again now and then: pauses, returned units and
  // moved windows come from there.
  async follow() {
    for (let looks = 0; ; looks++) {
      await waitSeen(this.lookIn(looks), this.signal);
      const before = this.status;
      const product = await this.app.api.product(this.id, this.signal).catch(() => null);
      if (!product) continue;
      this.take(product);
      if (this.status !== before) looks = 0;
      this.paint();
    }
  }

  lookIn(looks) {
    const ms = Math.min(LOOK_CAP_MS, LOOK_MS[this.status] * LOOK_GROWTH ** looks) * (0.8 + Math.random() * 0.4);
    if (this.status !== 'upcoming') return ms;
    const left = this.edge() - this.app.clock.now();
    return left - ms < HUSH_MS ? left + LOOK_MS.on_sale * Math.random() : ms;
  }

  // resume goes on with a press that a reload interrupted.
  resume() {
    if (!this.app.session.signedIn) return;
    const intent = this.purchase.resumable(this.id);
    if (intent) this.buy(intent);
  }

  // checkMine forgets an order that no longer stands, so that a buyer who let
  // one go can buy again.
  async checkMine() {
    if (!this.mine) return;
    const no = this.mine;
    const gone = await this.app.api.order(no, this.signal)
      .then((order) => isSettled(order) && order.status !== 'paid', (err) => err.code === 'not_found');
    if (!gone || this.signal.aborted) return;
    dropOrder(this.app.session.buyer, this.id, no);
    this.mine = null;
    this.paint();
  }

  press() {
    const face = this.face();
    if (!face.enabled) return;
    if (face.to) location.hash = `#/orders/${face.to}`;
    else if (!this.app.session.signedIn) this.pointToSignIn();
    else this.buy(this.purchase.intend(this.id, this.quantity));
  }

  pointToSignIn() {
    const box = document.getElementById('sign-in');
    box.scrollIntoView({ block: 'center' });
    box.querySelector('input')?.select();
    this.app.announce(box.textContent);
  }

  async buy(intent) {
    this.quantity = intent.quantity;
    this.run = new AbortController();
    this.signal.addEventListener('abort', () => this.run.abort(), { once: true });
    try {
      const outcome = await this.purchase.run(this.product, intent, {
        signal: this.run.signal,
        onAsk: () => this.enter({ kind: 'asking' }),
        onWait: (code, ms) => this.enter({ kind: 'waiting', code, until: this.app.clock.now() + ms }),
      });
      if (!this.signal.aborted) await this.conclude(outcome);
    } catch {
      if (this.signal.aborted) return; // left, not stopped: coming back goes on
      this.purchase.hold(intent);
      this.enter({ kind: 'refused', message: 'say_stopped' });
    }
  }

  async conclude({ orderNo, code }) {
    if (orderNo && !code) {
      location.hash = `#/orders/${orderNo}`;
      return;
    }
    if (orderNo) this.mine = orderNo;
    const closed = CLOSED.has(code);
    if (closed) this.product = { ...this.product, status: code };
    this.enter({ kind: 'cooling', code });
    await wait(COOL_MS, this.signal).catch(() => {});
    if (this.signal.aborted) return;
    // A closed sale speaks through its status, which may turn again.
    this.enter(closed ? { kind: 'idle' } : { kind: 'refused', code, message: this.refusal(code) });
  }

  refusal(code) {
    if (code === 'too_hot' || code === 'busy' || code === 'rate_limited' || code === 'offline') return 'e_gave_up';
    return this.app.speech.has(`e_${code}`) ? `e_${code}` : 'e_bad_request';
  }

  enter(phase) {
    this.phase = phase;
    this.paint();
  }

  draw() {
    const { app, product } = this;
    const { say, speech: { locale } } = app;
    this.timer = h('div', { class: 'timer', role: 'timer', 'aria-live': 'off' });
    this.button = h('button', { class: 'button buy', id: 'buy', type: 'button', onclick: () => this.press() });
    this.message = h('p', { class: 'message', id: 'message', role: 'status', 'aria-live': 'polite' });
    this.mineLink = h('a', { class: 'link', id: 'mine' }, say('buy_view'));
    this.stop = h('button', { class: 'link', id: 'stop', type: 'button', onclick: () => this.run.abort() }, say('stop_trying'));
    this.starts = h('span', {});
    this.ends = h('span', {});
    this.root.replaceChildren(
      h('a', { class: 'back', href: '#/' }, icon('M15 5l-7 7 7 7'), say('back')),
      h('div', { class: 'sheet' },
        art(product, 'art-large'),
        h('div', { class: 'about' },
          h('h1', { tabindex: -1 }, product.name),
          h('p', { class: 'price-large' }, price(product.price_cents, product.currency, locale)),
          this.timer,
          h('dl', { class: 'facts' },
            fact(say('limit'), say('limit_n', { n: product.per_user_limit })),
            fact(say('starts_at'), this.starts), fact(say('ends_at'), this.ends)),
          h('div', { class: 'buybar' },
            product.per_user_limit > 1 ? this.drawStepper() : '',
            this.button, this.message,
            h('p', { class: 'asides' }, this.stop, this.mineLink)))));
    document.title = `${product.name} · ${say('brand')}`;
  }

  drawStepper() {
    const { say } = this.app;
    const step = (by) => () => {
      this.quantity = Math.min(this.product.per_user_limit, Math.max(1, this.quantity + by));
      this.paint();
    };
    this.count = h('output', { 'aria-live': 'polite' });
    this.total = h('span', { class: 'total' });
    this.fewer = h('button', { type: 'button', 'aria-label': say('fewer'), onclick: step(-1) }, '−');
    this.more = h('button', { type: 'button', 'aria-label': say('more'), onclick: step(1) }, '+');
    return h('div', { class: 'stepper', role: 'group', 'aria-label': say('quantity') },
      h('div', { class: 'steps' }, this.fewer, this.count, this.more), this.total);
  }

  face() {
    const left = this.phase.until ? this.phase.until - this.app.clock.now() : 0;
    return faceOf({
      status: this.status, phase: { ...this.phase, left }, signedIn: this.app.session.signedIn,
      mine: this.mine, limit: this.product.per_user_limit,
    });
  }

  paint() {
    const { app, product, button } = this;
    const { say, speech: { locale } } = app;
    const face = this.face();
    const time = soonTime(product.starts_at, app.clock.now(), locale);
    setText(button, say(face.label, { time, ...face.values }));
    button.setAttribute('aria-disabled', String(!face.enabled));
    button.setAttribute('aria-busy', String(Boolean(face.busy)));
    button.classList.toggle('lit', Boolean(face.lit && face.enabled));
    button.classList.toggle('good', Boolean(face.to));
    setText(this.message, face.message ? say(face.message) : '');
    this.message.dataset.tone = face.tone;
    this.stop.hidden = this.phase.kind !== 'waiting';
    this.mineLink.hidden = !this.mine || Boolean(face.to);
    if (this.mine) this.mineLink.href = `#/orders/${this.mine}`;
    setText(this.starts, dateTime(product.starts_at, locale));
    setText(this.ends, dateTime(product.ends_at, locale));
    if (product.per_user_limit > 1) this.paintStepper();
    this.paintTimer();
  }

  paintStepper() {
    const { app, product, quantity, phase } = this;
    const held = phase.kind === 'asking' || phase.kind === 'waiting';
    setText(this.count, String(quantity));
    setText(this.total, app.say('total', { amount: money(product.price_cents * quantity, product.currency, app.speech.locale) }));
    this.fewer.disabled = held || quantity <= 1;
    this.more.disabled = held || quantity >= product.per_user_limit;
  }

  paintTimer() {
    const { app, timer } = this;
    const { status } = this;
    timer.hidden = status === 'ended' || status === 'paused';
    if (timer.hidden) return;
    const left = this.edge() - app.clock.now();
    const { days, hours, minutes, seconds } = countdown(left);
    timer.dataset.status = status;
    timer.classList.toggle('soon', status === 'upcoming' && left <= 60_000);
    timer.replaceChildren(
      h('span', { class: 'timer-name' }, app.say(status === 'upcoming' ? 'starts_in' : 'ends_in')),
      h('span', { class: 'digits' },
        days > 0 ? h('b', { class: 'days' }, app.say('days', { n: days })) : '',
        h('b', {}, hours), ':', h('b', {}, minutes), ':', h('b', {}, seconds)));
    this.announceTime(status, Math.ceil(left / 1000));
  }

  // announceTime speaks the few moments that matter; a timer that spoke every
  // second would drown the page.
  announceTime(status, seconds) {
    if (status === 'upcoming' && seconds === 60) this.app.announce(this.app.say('say_minute'));
    if (status === 'upcoming' && seconds === 10) this.app.announce(this.app.say('say_ten'));
    if (this.lastStatus === 'upcoming' && status === 'on_sale') this.app.announce(this.app.say('say_open'));
    this.lastStatus = status;
  }
}
