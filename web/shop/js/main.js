// The page's frame: who, which language, what time, and which view.

import { API, baseOf } from './api.js';
import { ROUND_MS, ServerClock, stepped } from './clock.js';
import { h, setText } from './dom.js';
import { comeBack, isWanted, leaveForLogin } from './login.js';
import { Network } from './network.js';
import { Session, takeHandOver } from './session.js';
import { confirmBox } from './view/confirm.js';
import { signInBox } from './view/signin.js';
import { Speech } from './i18n.js';
import { ordersView } from './view/orders.js';
import { orderView } from './view/order.js';
import { productsView } from './view/products.js';
import { productView } from './view/product.js';
import { about, backoff, wait, waitSeen, wake } from './wait.js';

// Each place with its view, its entry of the navigation, and what signing in is
// for there; a view that knows better says so (askSignIn).
const ROUTES = [
  [/^$/, productsView, 'nav_sale', 'sign_in_any'],
  [/^products\/(\d+)$/, productView, 'nav_sale', 'sign_in_buy'],
  [/^orders$/, ordersView, 'nav_orders', 'sign_in_orders'],
  [/^orders\/(SK[0-9A-Z]{26})$/, orderView, 'nav_orders', 'sign_in_order'],
];
const PAGE_BASE_MS = 1_000;
const PAGE_CAP_MS = 15_000;
const STEP_LOOK_MS = 1_000; // how often the local clocks are compared

const session = new Session();
const speech = new Speech(navigator.language);
const api = new API(baseOf(document), session, () => speech.locale);
const network = api.network = new Network(() => api.time());
const clock = new ServerClock(() => api.time());
// page is what the server says about the shop around it; failed: a code was not
// taken; left: the shopper has just signed out.
const page = { demo: false, loginURL: '', payURL: '', asked: null, failed: false, left: false };
const app = { api, clock, network, session, speech, page, announce, learnPage, signIn, askSignIn, say: (key, values) => speech.say(key, values) };
let view = null; // the AbortController that ends the present view
let arrival = null; // and the one that ends the question about a link
let reason = ''; // what signing in is for, as the page says it now

function announce(text) {
  setText(document.getElementById('announce'), text);
}

function show({ focus = false } = {}) {
  view?.abort();
  view = new AbortController();
  const [path, query = ''] = location.hash.replace(/^#?\/?/, '').split(/[?&](.*)/s);
  const [pattern, open, nav, why] = ROUTES.find(([route]) => route.test(path)) ?? [/^/, nothingHere, '', ''];
  const params = new URLSearchParams(query);
  document.documentElement.lang = speech.locale;
  drawTop(nav);
  drawSignIn(params.has('link') ? '' : why); // who has a link need not sign in
  announce('');
  const main = document.getElementById('main');
  main.replaceChildren(open(app, view.signal, ...(path.match(pattern)?.slice(1) ?? []), params));
  if (focus) {
    scrollTo(0, 0);
    focusHeading(main);
  }
  const heading = main.querySelector('h1')?.textContent;
  document.title = heading ? `${heading} · ${app.say('brand')}` : app.say('brand');
}

// focusHeading tells a screen reader that the view is another one: now, or
// when the view has loaded what its heading says.
function focusHeading(main) {
  const { signal } = view;
  const look = () => {
    const heading = main.querySelector('h1');
    heading?.focus({ preventScroll: true });
    return Boolean(heading);
  };
  if (look()) return;
  const observer = new MutationObserver(() => (signal.aborted || look()) && observer.disconnect());
  observer.observe(main, { childList: true, subtree: true });
}

function nothingHere() {
  return h('section', { class: 'empty' },
    h('h1', { tabindex: -1 }, app.say('not_here')),
    h('a', { class: 'button', href: '#/' }, app.say('see_sale')));
}

function drawTop(current) {
  const link = (key, href) => h('a', { href, 'aria-current': key === current && 'page' }, app.say(key));
  document.getElementById('top').replaceChildren(
    h('a', { class: 'brand', href: '#/' }, h('img', { src: new URL('../icon.svg', import.meta.url).href, alt: '', width: 28, height: 28 }), h('span', {}, app.say('brand'))),
    h('nav', { 'aria-label': app.say('nav') }, link('nav_sale', '#/'), link('nav_orders', '#/orders')),
    ...drawBuyer(),
    h('button', { class: 'chip', id: 'language', lang: speech.lang === 'zh' ? 'en' : 'zh-CN', onclick: switchLanguage }, app.say('other_language')));
  drawNetwork();
}

// drawBuyer shows who is signed in, and the way out: who was sent here under
// another's name should see it before buying.
function drawBuyer() {
  const { buyer, signedIn } = session;
  if (!signedIn) return [];
  return [
    buyer && h('span', { class: 'chip', id: 'buyer', title: buyer }, buyer),
    h('button', { class: 'link', id: 'sign-out', type: 'button', onclick: signOut }, app.say('sign_out')),
  ];
}

// signOut forgets who is signed in, in all tabs of this device.
function signOut() {
  page.left = true;
  if (session.signedIn) session.signOut(); // draws everything anew
  else show();
  focusHeading(document.getElementById('main'));
  announce(app.say('signed_out'));
}

// takeSignOut is the address by which the shop's own logout ends the sign-in here
// too; it reports whether the page is there. Any other site can lead here as
// well, so the shopper is asked first. The address leaves the history: whoever
// goes back must not be asked again.
function takeSignOut() {
  if (location.hash !== '#/signout') return false;
  history.replaceState(null, '', `${location.pathname}${location.search}#/`);
  if (session.signedIn) askSignOut();
  else signOut();
  return true;
}

async function askSignOut() {
  show();
  if (await confirmBox(app, 'sign_out', view.signal)) signOut();
}

function drawNetwork() {
  const box = document.getElementById('network');
  setText(box, network.lost ? app.say('network_lost') : '');
  box.hidden = !network.lost;
}

function switchLanguage() {
  speech.toggle();
  show();
  document.getElementById('language').focus();
}

// drawSignIn asks to sign in, and says what for; where it is for nothing, why is ''.
function drawSignIn(why) {
  const box = document.getElementById('sign-in');
  reason = why;
  box.hidden = session.signedIn || !why;
  box.replaceChildren(...(box.hidden ? [] : [page.left ? h('p', { id: 'signed-out' }, app.say('signed_out')) : '', signInBox(app, why)]));
  if (!session.signedIn) learnPage();
}

// askSignIn is what a view found out. A box that stands is only worded anew, so
// that nobody's typing is lost.
function askSignIn(why) {
  if (why === reason) return;
  if (!why || !reason) return drawSignIn(why);
  reason = why;
  const line = document.getElementById('sign-in-why');
  if (line) setText(line, app.say(why));
}

// learnPage asks how one signs in and pays here, until it is told. Shoppers who
// are signed in ask when they have something to pay: at the start of a sale each
// spared request counts.
function learnPage() {
  page.asked ??= askPage();
  return page.asked;
}

async function askPage() {
  for (let tries = 0; ; tries++) {
    try {
      const { demo, login_url: loginURL, pay_url: payURL } = await api.page();
      Object.assign(page, { demo: demo === true, loginURL: loginURL || '', payURL: payURL || '' });
      break;
    } catch (err) {
      await waitSeen(Math.max(err.retryAfterMs ?? 0, backoff(tries, PAGE_BASE_MS, PAGE_CAP_MS)));
    }
  }
  if (!session.signedIn && (page.demo || page.loginURL)) show();
}

// signIn leads to the shop's login; in the demo it is here.
async function signIn() {
  await learnPage();
  if (page.loginURL) {
    leaveForLogin(page.loginURL, location);
    return;
  }
  if (page.demo && session.signedIn) {
    const { token } = await api.demoLogin(session.buyer);
    session.signIn(token);
    return;
  }
  const box = document.getElementById('sign-in');
  if (session.signedIn) session.signOut(); // the box says where to sign in again
  box.scrollIntoView({ block: 'center' });
  box.querySelector('input')?.select();
  announce(box.textContent);
}

// arrive takes what the shop handed over in the address, or somebody else.
async function arrive() {
  const handed = takeHandOver(location, history);
  if (!handed) return;
  arrival?.abort();
  arrival = new AbortController();
  try {
    if (!(await isWanted(app, handed, arrival.signal))) return;
    await comeBack(app, handed, location);
    page.failed = false;
  } catch {
    page.failed = true;
    show();
  }
}

// keepTime takes a full round at first and whenever the old samples may be
// wrong (the page is seen again, the local clocks parted, the network is back),
// and otherwise one sample now and then: a waiting crowd must not become a load.
async function keepTime() {
  const measure = () => clock.sync(wait);
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && measure());
  network.addEventListener('healed', measure);
  watchStep(measure);
  await measure();
  for (;;) {
    await waitSeen(about(ROUND_MS));
    await clock.sync(wait, 1);
  }
}

function watchStep(onStep) {
  const read = () => ({ wall: Date.now(), mono: performance.now() });
  let before = read();
  setInterval(() => {
    const after = read();
    if (stepped(before, after)) onStep();
    before = after;
  }, STEP_LOOK_MS);
}

network.follow(window);
network.addEventListener('change', () => {
  drawNetwork(); // an alert speaks for itself when it comes, not when it goes
  if (!network.lost) announce(app.say('network_back'));
});
network.addEventListener('healed', wake);
session.follow(window);
session.addEventListener('change', () => {
  if (session.signedIn) page.left = false;
  show();
});
addEventListener('hashchange', () => {
  page.left = false;
  arrive();
  if (!takeSignOut()) show({ focus: true });
});
keepTime();
arrive();
if (!takeSignOut()) show();
