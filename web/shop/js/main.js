// The page's frame: who, which language, what time, and which view.

import { API } from './api.js';
import { ROUND_MS, ServerClock } from './clock.js';
import { h, setText } from './dom.js';
import { Session } from './session.js';
import { signInBox } from './view/signin.js';
import { Speech } from './i18n.js';
import { ordersView } from './view/orders.js';
import { orderView } from './view/order.js';
import { productsView } from './view/products.js';
import { productView } from './view/product.js';
import { wait, waitSeen } from './wait.js';

const ROUTES = [
  [/^$/, productsView, 'nav_sale'],
  [/^products\/(\d+)$/, productView, 'nav_sale'],
  [/^orders$/, ordersView, 'nav_orders'],
  [/^orders\/(SK[0-9A-Z]{26})$/, orderView, 'nav_orders'],
];

const session = new Session();
const speech = new Speech(navigator.language);
const api = new API(session, () => speech.locale);
const clock = new ServerClock(() => api.time());
const app = { api, clock, session, speech, demo: false, announce, say: (key, values) => speech.say(key, values) };
let view = null; // the AbortController that ends the present view

function announce(text) {
  setText(document.getElementById('announce'), text);
}

function show({ focus = false } = {}) {
  view?.abort();
  view = new AbortController();
  const path = location.hash.replace(/^#?\/?/, '').replace(/[?&].*$/, '');
  const [pattern, open, nav] = ROUTES.find(([route]) => route.test(path)) ?? [/^/, nothingHere, ''];
  document.documentElement.lang = speech.locale;
  drawTop(nav);
  drawSignIn();
  announce('');
  const main = document.getElementById('main');
  main.replaceChildren(open(app, view.signal, ...(path.match(pattern)?.slice(1) ?? [])));
  if (focus) {
    scrollTo(0, 0);
    main.querySelector('h1')?.focus({ preventScroll: true });
  }
  const heading = main.querySelector('h1')?.textContent;
  document.title = heading ? `${heading} · ${app.say('brand')}` : app.say('brand');
}

function nothingHere() {
  return h('section', { class: 'empty' },
    h('h1', { tabindex: -1 }, app.say('not_here')),
    h('a', { class: 'button', href: '#/' }, app.say('see_sale')));
}

function drawTop(current) {
  const link = (key, href) => h('a', { href, 'aria-current': key === current && 'page' }, app.say(key));
  const { buyer, signedIn } = session;
  document.getElementById('top').replaceChildren(
    h('a', { class: 'brand', href: '#/' }, h('img', { src: 'icon.svg', alt: '', width: 28, height: 28 }), h('span', {}, app.say('brand'))),
    h('nav', {}, link('nav_sale', '#/'), link('nav_orders', '#/orders')),
    signedIn && app.demo
      ? h('button', { class: 'chip', id: 'sign-out', title: app.say('sign_out', { buyer }), 'aria-label': app.say('sign_out', { buyer }), onclick: () => session.signOut() }, buyer)
      : '',
    h('button', { class: 'chip', id: 'language', lang: speech.lang === 'zh' ? 'en' : 'zh', onclick: switchLanguage }, app.say('other_language')));
}

function switchLanguage() {
  speech.toggle();
  show();
  document.getElementById('language').focus();
}

function drawSignIn() {
  const box = document.getElementById('sign-in');
  box.hidden = session.signedIn;
  box.replaceChildren(session.signedIn ? '' : signInBox(app));
}

// findDemo asks once whether this is a demo. Shoppers whom the shop signed in
// do not ask: at the start of a sale each spared request counts.
async function findDemo() {
  if (session.signedIn && !session.fromDemo) return;
  app.demo = await api.demoInfo().then((info) => info.demo === true, () => false);
  if (app.demo) show();
}

// keepTime takes a full round at first and when the page is seen again (a
// device that slept may have stopped its monotonic clock), and otherwise one
// sample now and then: a waiting crowd must not become a load.
async function keepTime() {
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && clock.sync(wait));
  await clock.sync(wait);
  for (;;) {
    await waitSeen(ROUND_MS * (0.8 + Math.random() * 0.4));
    await clock.sync(wait, 1);
  }
}

session.adoptFragment(location, history);
session.follow(window);
session.addEventListener('change', () => show());
addEventListener('hashchange', () => {
  session.adoptFragment(location, history);
  show({ focus: true });
});
keepTime();
show();
findDemo();
