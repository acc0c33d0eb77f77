// One product: when, how much, the button, and what became of the press.

import { dropOrder, lastOrder, Purchase } from '../purchase.js';
import { h, icon, setText } from '../dom.js';
import { dateTime, soonTime } from '../format.js';
import { endsEarly } from '../session.js';
import { everySecond, fact, load, picture, price, statusAt } from './parts.js';
import { ChallengePanel, PERSONAL, sayPass } from './challenge.js';
import { CLOSED, faceOf, SIGN_IN } from './face.js';
import { lookIn } from './look.js';
import { Pass } from '../pass.js';
import { Stepper } from './stepper.js';
import { Timer } from './timer.js';
import { isSettled } from '../watch.js';
import { wait, waitSeen } from '../wait.js';

const COOL_MS = 5_000; // from one press to the next

// After these a run has given up trying, and its press can be gone on with.
const GAVE_UP = { too_hot: 'e_gave_up', busy: 'e_gave_up', rate_limited: 'e_gave_up', offline: 'e_gave_up_offline' };

// What is told otherwise of a purchase than of an order.
const NO_MORE = { wrong_state: 'e_returned' };

export function productView(app, signal, id) {
  return new ProductView(app, signal, Number(id)).root;
}

class ProductView {
  constructor(app, signal, id) {
    Object.assign(this, { app, signal, id });
    const { session, api, clock } = app;
    this.root = h('section', { class: 'product' }, h('p', { class: 'note' }, app.say('loading')));
    this.pass = new Pass(api, clock, id, { signal, onChange: () => this.passed() });
    this.purchase = new Purchase(api, clock, session.buyer, this.pass);
    this.phase = { kind: 'idle' };
    this.mine = session.signedIn ? lastOrder(session.buyer, id) : null;
    this.start().catch((err) => this.missing(err));
  }

  async start() {
    const { app, signal } = this;
    const product = await load(app, this.root, signal, () => app.api.product(this.id, signal));
    this.draw(product);
    this.take(product);
    everySecond(app.clock, () => this.edge(), () => this.paint(), signal);
    this.resume();
    this.checkMine();
    if (product.token_required) this.pass.keep(() => this.product, () => this.wantsPass()).catch(() => {});
    await this.follow();
  }

  missing(err) {
    if (this.signal.aborted) return;
    this.app.askSignIn('');
    this.root.replaceChildren(h('div', { class: 'empty' },
      h('h1', { tabindex: -1 }, this.app.say(err.code === 'not_found' ? 'e_not_found' : 'load_failed')),
      h('a', { class: 'button', href: '#/' }, this.app.say('see_sale'))));
  }

  take(product) {
    this.product = product;
    this.app.clock.hint(product.now_ms);
    this.stepper.limit = product.per_user_limit;
    this.stepper.set(this.stepper.quantity);
  }

  get status() { return statusAt(this.product, this.app.clock.now()); }
  // returns is the ms for which units may still come back; NaN if that is unknown.
  get returns() {
    if (this.product.all_paid) return 0;
    return Date.parse(this.product.may_return_until ?? '') - this.app.clock.now();
  }
  // edge is the next end of the window.
  edge() { return Date.parse(this.status === 'upcoming' ? this.product.starts_at : this.product.ends_at); }

  // wantsPass: a token is fetched ahead for whoever could buy with it.
  wantsPass() {
    const { app, mine, product, status } = this;
    return app.session.signedIn && (status === 'upcoming' || status === 'on_sale') && !(mine && product.per_user_limit === 1);
  }

  // follow looks at the product again now and then: pauses, returned units and
  // moved windows come from there.
  async follow() {
    let floor = 0;
    for (let looks = 0; ; looks++) {
      while (!(await this.waitToLook(Math.max(floor, this.lookIn(looks))))) looks = 0;
      const before = this.status;
      try {
        this.take(await this.app.api.product(this.id, this.signal));
        floor = 0;
      } catch (err) {
        floor = err.retryAfterMs ?? 0;
        continue;
      }
      if (this.status !== before) looks = 0;
      this.paint();
    }
  }

  // waitToLook reports whether it waited to its end: after the answer to a press
  // the next look is due as if nothing had been looked at before.
  async waitToLook(ms) {
    this.look = new AbortController();
    const leave = () => this.look.abort();
    this.signal.addEventListener('abort', leave);
    try {
      await waitSeen(ms, this.look.signal);
      return true;
    } catch (err) {
      if (this.signal.aborted) throw err;
      return false;
    } finally {
      this.signal.removeEventListener('abort', leave);
    }
  }

  lookIn(looks) {
    return lookIn({ status: this.status, left: this.edge() - this.app.clock.now(), returns: this.returns, looks }, Math.random());
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
    else if (!this.app.session.signedIn) this.app.signIn();
    else this.buy(this.purchase.intend(this.id, this.stepper.quantity));
  }

  async buy(intent) {
    this.stepper.set(intent.quantity);
    this.coolAt = this.app.clock.now() + COOL_MS;
    this.run = new AbortController();
    this.signal.addEventListener('abort', () => this.run.abort(), { once: true });
    try {
      const outcome = await this.purchase.run(this.product, intent, {
        signal: this.run.signal,
        onAsk: () => this.ask(intent),
        onWait: (code, ms) => this.enter({ kind: 'waiting', code, until: this.app.clock.now() + ms }),
      });
      if (!this.signal.aborted) this.conclude(outcome);
    } catch {
      if (this.signal.aborted) return; // left, not stopped: coming back goes on
      this.purchase.hold(intent);
      this.refuse('', 'say_stopped');
    }
  }

  // A press that cannot go on without the challenge points to it: when it is
  // pressed, and when the challenge arrives after the press.
  ask(intent) {
    this.enter({ kind: 'asking', intent });
    if (this.unanswered) this.panel.focus();
  }

  // unanswered: the press waits for a person.
  get unanswered() {
    return this.phase.kind === 'asking' && !this.phase.intent.token && PERSONAL.has(this.pass.state.kind);
  }

  passed() {
    if (!this.product) return;
    this.paint();
    if (this.unanswered) this.panel.focus();
  }

  conclude({ orderNo, code }) {
    if (orderNo && !code) {
      location.hash = `#/orders/${orderNo}`;
      return;
    }
    if (orderNo) this.mine = orderNo;
    this.look?.abort();
    // A closed sale speaks through its status, which may turn again.
    if (CLOSED.has(code)) {
      this.product = { ...this.product, status: code };
      this.enter({ kind: 'idle', code });
      return;
    }
    const say = GAVE_UP[code] ?? NO_MORE[code] ?? `e_${code}`;
    this.refuse(code, this.app.speech.has(say) ? say : 'e_bad_request');
  }

  // refuse says why, and lights the button again when the press has cooled.
  async refuse(code, message) {
    const until = this.coolAt;
    this.enter({ kind: 'refused', code, message, until });
    await wait(until - this.app.clock.now(), this.signal).catch(() => {});
    if (!this.signal.aborted) this.paint();
  }

  enter(phase) {
    this.phase = phase;
    this.paint();
  }

  draw(product) {
    const { app } = this;
    const { say, speech: { locale } } = app;
    this.timer = new Timer(app);
    this.stepper = new Stepper(app, () => this.paint());
    this.panel = new ChallengePanel(app, this.signal);
    this.button = h('button', { class: 'button buy', id: 'buy', type: 'button', onclick: () => this.press(), 'aria-describedby': 'message' });
    this.message = h('p', { class: 'message', id: 'message', role: 'status', 'aria-live': 'polite' });
    this.mineLink = h('a', { class: 'link', id: 'mine' }, say('buy_view'));
    this.stop = h('button', { class: 'link', id: 'stop', type: 'button', onclick: () => this.run.abort() }, say('stop_trying'));
    this.starts = h('span', {});
    this.ends = h('span', {});
    this.endsName = h('span', {});
    this.warning = h('div', { class: 'warning', id: 'login-ends', role: 'status', hidden: true });
    this.root.replaceChildren(
      h('a', { class: 'back', href: '#/' }, icon('M15 5l-7 7 7 7'), say('back')),
      this.warning,
      h('div', { class: 'sheet' },
        picture(app, product, 'art-large'),
        h('div', { class: 'about' },
          h('h1', { tabindex: -1 }, product.name),
          h('p', { class: 'price-large' }, price(product.price_cents, product.currency, locale)),
          this.timer.root,
          h('dl', { class: 'facts' },
            fact(say('limit'), say('limit_n', { n: product.per_user_limit })),
            fact(say('starts_at'), this.starts), fact(this.endsName, this.ends)),
          h('div', { class: 'buybar' },
            this.panel.root, this.stepper.root, this.button, this.message,
            h('p', { class: 'asides' }, this.stop, this.mineLink)))));
    document.title = `${product.name} · ${say('brand')}`;
  }

  face() {
    const { app, product, phase, unanswered } = this;
    const now = app.clock.now();
    const message = phase.kind === 'asking' ? sayPass(phase.intent.token ? {} : this.pass.state) : phase.message;
    return faceOf({
      status: this.status,
      phase: { ...phase, unanswered, message, left: phase.until ? phase.until - now : 0 },
      signedIn: app.session.signedIn, mine: this.mine, limit: product.per_user_limit,
      checks: PERSONAL.has(this.pass.state.kind),
      returns: this.returns,
    });
  }

  paint() {
    const { app, product, button } = this;
    const { say, speech: { locale } } = app;
    const now = app.clock.now();
    const face = this.face();
    const words = {
      time: soonTime(product.starts_at, now, locale),
      until: product.may_return_until ? soonTime(product.may_return_until, now, locale) : '',
      ...face.values,
    };
    setText(button, say(face.label, words));
    button.setAttribute('aria-disabled', String(!face.enabled));
    button.setAttribute('aria-busy', String(Boolean(face.busy)));
    button.classList.toggle('lit', Boolean(face.lit && face.enabled));
    button.classList.toggle('good', Boolean(face.to));
    setText(this.message, face.message ? say(face.message, words) : '');
    this.message.dataset.tone = face.tone;
    this.stop.hidden = this.phase.kind !== 'waiting' && !this.unanswered;
    this.mineLink.hidden = !this.mine || Boolean(face.to);
    if (this.mine) this.mineLink.href = `#/orders/${this.mine}`;
    setText(this.starts, dateTime(product.starts_at, locale));
    const over = this.status === 'ended';
    setText(this.endsName, say(over ? 'ended_at' : 'ends_at'));
    setText(this.ends, over && now < Date.parse(product.ends_at) ? say('ended_early') : dateTime(product.ends_at, locale));
    this.stepper.paint(product, this.phase.kind === 'asking' || this.phase.kind === 'waiting');
    this.panel.paint(this.pass);
    this.timer.paint(this.status, this.edge());
    app.askSignIn(SIGN_IN[this.status]);
    this.paintWarning(now);
  }

  // paintWarning tells in time that the login will not last: a shopper who
  // finds out at the start has lost.
  paintWarning(now) {
    const { app, product, warning } = this;
    const { session, say } = app;
    if (session.signedIn && app.clock.exact && session.expiresAt > 0 && session.expiresAt <= now) {
      session.refused(session.token); // draws everything anew
      return;
    }
    const early = session.signedIn && this.status !== 'ended' && endsEarly(session.expiresAt, Date.parse(product.starts_at), now);
    if (early !== warning.hidden) return;
    warning.hidden = !early;
    const time = soonTime(new Date(session.expiresAt).toISOString(), now, app.speech.locale);
    warning.replaceChildren(h('p', {}, say('login_ends', { time })),
      h('button', { class: 'button plain', id: 'login-again', type: 'button', onclick: () => app.signIn() }, say('login_again')));
  }
}
