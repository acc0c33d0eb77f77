// One press of the button, carried through to an answer.
//
// A press is an intent with a random key. The key is kept until the answer is
// certain, so that a second press, a reload or a retry asks for the same order
// and never for a second one.

import { forget, recallJSON, rememberJSON } from './memory.js';
import { backoff, stopped, wait, waitSeen } from './wait.js';

const RESUME_MS = 120_000; // a reload within this time goes on by itself
const KEEP_MS = 24 * 3_600_000; // an uncertain intent is remembered this long
const MAX_TRIES = 12; // with the waits below: about a minute, then the shopper decides
const MAX_SILENT = 60; // tries without any connection: some seven minutes, a long tunnel
const RETRY_BASE_MS = 600;
const RETRY_CAP_MS = 8_000;
const EARLY_MS = 3_000; // a start missed by less than this is a clock's error, not a no

// Presses right after the start are spread. People who wait for a light press
// some 200 to 500 ms after it, nearly all within a third of a second: the same
// length again, at random, halves that peak. Nobody sees it, because the button
// answers at once, and it treats all alike. Once the first rush is over there
// is nothing left to spread.
export const SPREAD_MS = 300;
const RUSH_MS = 5_000;

// After these the same request is tried again by itself.
const RETRY = new Set(['too_hot', 'busy', 'rate_limited', 'offline']);
// After these the server may have taken the order all the same.
const UNSURE = new Set(['busy', 'offline']);

const intentKey = (buyer, id) => `seckill_intent:${buyer}:${id}`;
const orderKey = (buyer, id) => `seckill_order:${buyer}:${id}`;

// lastOrder is the order that this device got for the product, if it still
// stands. It spares the server a question from every page load.
export const lastOrder = (buyer, id) => recallJSON(orderKey(buyer, id));
export const keepOrder = (buyer, id, no) => rememberJSON(orderKey(buyer, id), no);
export function dropOrder(buyer, id, no) {
  if (lastOrder(buyer, id) === no) forget(orderKey(buyer, id));
}

export class Purchase {
  // pass gives the purchase token where the product wants one.
  constructor(api, clock, buyer, pass, random = Math.random) {
    Object.assign(this, { api, clock, buyer, pass, random });
  }

  // open returns the unsettled intent for a product, or null.
  open(productId) {
    const intent = recallJSON(intentKey(this.buyer, productId));
    if (!intent || typeof intent.key !== 'string') return null;
    if (this.clock.now() - intent.at < KEEP_MS) return intent;
    this.settle(intent);
    return null;
  }

  // resumable is the intent with which a reload goes on by itself: fresh, and
  // not stopped by the shopper.
  resumable(productId) {
    const intent = this.open(productId);
    return intent && !intent.held && this.clock.now() - intent.at < RESUME_MS ? intent : null;
  }

  // intend goes on with the unsettled intent where there is one. An order may
  // already stand behind an unsure one, so it keeps even its quantity.
  intend(productId, quantity) {
    const intent = this.open(productId);
    if (intent && (intent.unsure || intent.quantity === quantity)) return intent;
    return this.save({ productId, quantity, key: randomKey(), at: Math.round(this.clock.now()), unsure: false, held: false, token: '' });
  }

  save(intent) {
    rememberJSON(intentKey(this.buyer, intent.productId), intent);
    return intent;
  }

  // hold keeps an intent for the next press, but not for a reload.
  hold(intent) {
    intent.held = true;
    this.save(intent);
  }

  // settle forgets an intent whose answer is certain. A token that may stand
  // for an order is spent; one that brought a plain no serves the next press.
  settle(intent, spent = true) {
    forget(intentKey(this.buyer, intent.productId));
    if (spent) this.pass.spend(intent.token);
  }

  // spread is how long a press waits before it asks for the first time.
  spread(product) {
    return this.clock.now() - Date.parse(product.starts_at) < RUSH_MS ? this.random() * SPREAD_MS : 0;
  }

  // run asks until the answer is certain and returns {orderNo} or {code}.
  // onWait(code, ms) tells of each pause before the next try. A run that is
  // stopped keeps its intent.
  async run(product, intent, { onAsk, onWait, signal }) {
    let renewed = false;
    let silent = 0;
    intent.held = false;
    onAsk();
    await wait(this.spread(product), signal);
    for (let tries = 0; ; tries++) {
      if (tries > 0) onAsk();
      try {
        return this.got(intent, await this.ask(product, intent, signal));
      } catch (err) {
        if (signal.aborted) throw stopped();
        if (err.code === 'token_invalid' && intent.token && !intent.unsure && !renewed) {
          renewed = true;
          this.pass.spend(intent.token);
          intent.token = '';
          continue;
        }
        if (err.code === 'offline') silent++;
        const spent = tries - silent + 1 >= MAX_TRIES || silent >= MAX_SILENT;
        if (spent || !this.again(err, product)) return await this.refused(err, intent, signal);
        const ms = Math.max(err.retryAfterMs ?? 0, backoff(tries, RETRY_BASE_MS, RETRY_CAP_MS, this.random));
        onWait(err.code, ms);
        // With the connection come back there is nothing to wait for.
        await (err.code === 'offline' ? waitSeen(ms, signal) : wait(ms, signal));
      }
    }
  }

  again(err, product) {
    if (err.code === 'not_started') return Date.parse(product.starts_at) - this.clock.now() < EARLY_MS;
    return RETRY.has(err.code);
  }

  got(intent, orderNo) {
    keepOrder(this.buyer, intent.productId, orderNo);
    this.settle(intent);
    return { orderNo };
  }

  // ask is one try: the purchase token where the product wants one, then the
  // order. What the token's road answers says nothing about an order.
  async ask(product, intent, signal) {
    if (product.token_required && !intent.token) {
      intent.token = await this.pass.take(signal);
      this.save(intent);
    }
    const body = { quantity: intent.quantity, ...(intent.token && { token: intent.token }) };
    // Unsure from the moment of sending: a reload may cut the answer off.
    const before = intent.unsure;
    intent.unsure = true;
    this.save(intent);
    try {
      return (await this.api.buy(product.id, body, intent.key, signal)).order_no;
    } catch (err) {
      intent.unsure = before || !err.code || UNSURE.has(err.code);
      this.save(intent);
      throw err;
    }
  }

  // refused ends a run without an order number. When an earlier try may have
  // reached the ledger, the buyer's orders are looked through first: "sold
  // out" can be true for everyone else and wrong for this buyer. While they
  // cannot all be read the intent stays, and the next press asks under its key.
  async refused(err, intent, signal) {
    const { code } = err;
    if (RETRY.has(code)) {
      this.hold(intent);
      return { code };
    }
    const known = err.orderNo || !intent.unsure;
    const { orderNo, sure } = known ? { orderNo: err.orderNo, sure: true } : await this.find(intent, signal);
    if (!sure) {
      this.hold(intent);
      return { code: code === 'unauthenticated' ? code : 'busy' };
    }
    if (orderNo) keepOrder(this.buyer, intent.productId, orderNo);
    this.settle(intent, intent.unsure || code === 'token_invalid');
    if (orderNo && code !== 'already_purchased') return { orderNo };
    return { code, orderNo };
  }

  // find looks for the intent's order. It is sure of one that it finds; that
  // there is none only a whole list says.
  async find(intent, signal) {
    try {
      const { orders, partial } = await this.api.orders(signal);
      const mine = orders.find((o) => o.product_id === intent.productId && Date.parse(o.created_at) >= intent.at - EARLY_MS);
      return { orderNo: mine?.order_no, sure: Boolean(mine) || !partial };
    } catch {
      return { sure: false };
    }
  }
}

// randomKey has 128 random bits. (crypto.randomUUID exists on https only.)
function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
}
