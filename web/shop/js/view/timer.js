// The countdown to the next end of a sale's window.

import { h } from '../dom.js';
import { countdown } from '../format.js';

const SOON_MS = 60_000;

export class Timer {
  constructor(app) {
    this.app = app;
    this.root = h('div', { class: 'timer', role: 'timer', 'aria-live': 'off' });
  }

  paint(status, edge) {
    const { app, root } = this;
    root.hidden = status === 'ended' || status === 'paused';
    const left = edge - app.clock.now();
    this.announce(status, Math.ceil(left / 1000));
    if (root.hidden) return;
    const { days, hours, minutes, seconds } = countdown(left);
    root.dataset.status = status;
    root.classList.toggle('soon', status === 'upcoming' && left <= SOON_MS);
    root.replaceChildren(
      h('span', { class: 'timer-name' }, app.say(status === 'upcoming' ? 'starts_in' : 'ends_in')),
      h('span', { class: 'digits' },
        days > 0 ? h('b', { class: 'days' }, app.say('days', { n: days })) : '',
        h('b', {}, hours), ':', h('b', {}, minutes), ':', h('b', {}, seconds)));
  }

  // announce speaks the few moments that matter; a timer that spoke every
  // second would drown the page.
  announce(status, seconds) {
    const { app } = this;
    if (status === 'upcoming' && seconds === 60) app.announce(app.say('say_minute'));
    if (status === 'upcoming' && seconds === 10) app.announce(app.say('say_ten'));
    if (this.last === 'upcoming' && status === 'on_sale') app.announce(app.say('say_open'));
    if (this.last === 'sold_out' && status === 'on_sale') app.announce(app.say('say_returned'));
    this.last = status;
  }
}
