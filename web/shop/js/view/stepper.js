// How many, where a buyer may take more than one.

import { h, setText } from '../dom.js';
import { money } from '../format.js';

export class Stepper {
  constructor(app, onChange) {
    const { say } = app;
    this.app = app;
    this.quantity = 1;
    this.limit = 1;
    const step = (by) => () => {
      this.set(this.quantity + by);
      onChange();
    };
    this.count = h('output', { 'aria-live': 'polite' });
    this.total = h('span', { class: 'total' });
    this.fewer = h('button', { type: 'button', 'aria-label': say('fewer'), onclick: step(-1) }, '−');
    this.more = h('button', { type: 'button', 'aria-label': say('more'), onclick: step(1) }, '+');
    this.root = h('div', { class: 'stepper', role: 'group', 'aria-label': say('quantity') },
      h('div', { class: 'steps' }, this.fewer, this.count, this.more), this.total);
  }

  set(quantity) {
    this.quantity = Math.min(this.limit, Math.max(1, quantity));
  }

  paint(product, held) {
    const { app, quantity } = this;
    this.root.hidden = product.per_user_limit <= 1;
    setText(this.count, String(quantity));
    setText(this.total, app.say('total', { amount: money(product.price_cents * quantity, product.currency, app.speech.locale) }));
    this.fewer.disabled = held || quantity <= 1;
    this.more.disabled = held || quantity >= this.limit;
  }
}
