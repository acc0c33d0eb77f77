// What the shop asks before a purchase, as a person sees it. Mostly nothing:
// the device answers by itself.

import { fill } from '../address.js';
import { h, icon } from '../dom.js';

// These states of the token wait for a person.
export const PERSONAL = new Set(['picture', 'shop']);

export class ChallengePanel {
  constructor(app, signal) {
    Object.assign(this, { app, signal });
    this.root = h('section', { class: 'challenge', id: 'challenge', 'aria-label': app.say('challenge'), hidden: true });
  }

  // paint draws anew only what is new, so that nobody's typing is lost.
  paint(pass) {
    const { state } = pass;
    if (state.kind === 'working' && this.drawn?.kind === 'working') {
      this.bar.value = state.share;
      return;
    }
    if (state === this.drawn) return;
    const focused = this.root.contains(document.activeElement);
    this.drawn = state;
    const content = this[`draw_${state.kind}`]?.(pass, state) ?? [];
    this.root.hidden = content.length === 0;
    this.root.classList.toggle('personal', PERSONAL.has(state.kind));
    this.root.replaceChildren(...content);
    if (focused) this.focus();
  }

  // focus goes to what can be answered; from a panel that has nothing left to
  // ask it goes back to the button.
  focus() {
    const find = (what) => this.root.querySelector(what);
    const first = find('#challenge-open') ?? find('input') ?? find('button') ?? document.getElementById('buy');
    first.focus({ preventScroll: true }); // the bar with all of them is in sight
  }

  draw_working(pass, { share, canRead }) {
    const { say } = this.app;
    this.bar = h('progress', { max: 1, value: share, 'aria-label': say('challenge_working') });
    return [
      h('p', {}, say('challenge_working')), this.bar,
      canRead && h('button', { class: 'link', id: 'challenge-read', type: 'button', onclick: () => pass.letRead() }, say('challenge_read')),
    ].filter(Boolean);
  }

  draw_later() {
    return [h('p', { role: 'status' }, this.app.say('challenge_later'))];
  }

  draw_picture(pass, { image, canWork, wrong, stale }) {
    const { say } = this.app;
    return [
      h('p', { role: 'status' }, say(stale ? 'challenge_stale' : wrong ? 'challenge_wrong' : 'challenge_picture')),
      h('div', { class: 'row' },
        h('img', { src: image, alt: say('challenge_alt'), class: 'challenge-picture' }),
        h('button', {
          class: 'button plain', id: 'challenge-another', type: 'button', title: say('challenge_another'), 'aria-label': say('challenge_another'), onclick: () => pass.another(),
        }, icon('M19 5v5h-5 M19 10a8 8 0 1 0 1 5'))),
      stale ? '' : this.field(pass, say('challenge_letters')),
      canWork ? h('button', { class: 'link', id: 'challenge-work', type: 'button', onclick: () => pass.letWork() }, say('challenge_work')) : '',
    ];
  }

  draw_shop(pass, { url, id, wrong, stale }) {
    const { say } = this.app;
    return [
      h('p', { role: 'status' }, say(stale ? 'challenge_stale' : wrong ? 'challenge_wrong' : 'challenge_shop')),
      url && !stale ? h('button', { class: 'button plain', id: 'challenge-open', type: 'button', onclick: () => this.openShop(pass, url, id) }, say('challenge_open')) : '',
      stale ? h('button', { class: 'link', id: 'challenge-another', type: 'button', onclick: () => pass.another() }, say('challenge_again'))
        : this.field(pass, say('challenge_code')),
    ];
  }

  field(pass, label) {
    const input = h('input', {
      id: 'challenge-answer', name: 'answer', required: true, maxlength: 512, autocomplete: 'off', autocapitalize: 'off', autocorrect: 'off', spellcheck: 'false',
    });
    const onsubmit = (event) => {
      event.preventDefault();
      pass.answer(input.value.trim());
    };
    return h('form', { class: 'row', onsubmit },
      h('label', { class: 'unseen', for: 'challenge-answer' }, label), input,
      h('button', { class: 'button', type: 'submit' }, this.app.say('challenge_send')));
  }

  // openShop opens the shop's own check in a window, told what it is for and
  // whom to answer: opener.postMessage({ answer }, origin). Only that window at
  // exactly that origin is listened to.
  openShop(pass, url, id) {
    const told = { origin: location.origin, product_id: pass.productId, challenge_id: id, lang: this.app.speech.locale };
    const address = fill(url, told, location.href);
    const { origin } = new URL(address);
    const opened = window.open(address, 'seckill-check', 'popup,width=480,height=640');
    addEventListener('message', (event) => {
      if (event.origin !== origin || event.source !== opened || typeof event.data?.answer !== 'string') return;
      opened.close();
      pass.answer(event.data.answer);
    }, { signal: this.signal });
  }
}

// sayPass is what a press that waits for the token says.
export function sayPass(state) {
  return { picture: 'say_picture', shop: 'say_picture', working: 'say_working' }[state.kind] ?? 'say_asking';
}
