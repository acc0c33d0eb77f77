// Who is shopping. The shop's own site puts a bearer token into
// localStorage.seckill_token, or links here with #token=…, or with #code=…, a
// one-time code that is exchanged for one. Who comes by a link that this page did
// not ask for is asked first.

import { forget, recall, remember } from './memory.js';

const TOKEN = 'seckill_token';

// A login must last over the start, the queue behind it and the way to the
// cashier, or the shopper is thrown out in the one minute that counts.
const LAST_MS = 5 * 60_000;

// endsEarly reports whether a login that ends then is too short for a sale
// that starts then; both in ms of server time, an end of 0 is unknown.
export function endsEarly(expiresAt, startsAt, now) {
  return expiresAt > 0 && expiresAt < Math.max(startsAt, now) + LAST_MS;
}

export class Session extends EventTarget {
  constructor() {
    super();
    this.token = recall(TOKEN) ?? '';
  }

  get buyer() { return String(claimsOf(this.token).sub ?? ''); }
  // expiresAt is when the login ends, in ms of server time; 0 if it does not say.
  get expiresAt() {
    const { exp } = claimsOf(this.token);
    return Number.isFinite(exp) ? exp * 1000 : 0;
  }
  get signedIn() { return this.token !== ''; }

  signIn(token) {
    remember(TOKEN, token);
    this.set(token);
  }

  signOut() {
    forget(TOKEN);
    this.set('');
  }

  // refused drops a token that the server did not take, unless the shop has
  // put a newer one in its place meanwhile.
  refused(token) {
    if (!token || token !== this.token) return;
    const newer = recall(TOKEN);
    if (newer && newer !== token) this.set(newer);
    else this.signOut();
  }

  // follow notices a sign-in or sign-out in another tab.
  follow(window) {
    window.addEventListener('storage', ({ key }) => {
      if (key === TOKEN || key === null) this.set(recall(TOKEN) ?? '');
    });
  }

  set(token) {
    if (token === this.token) return;
    this.token = token;
    this.dispatchEvent(new Event('change'));
  }
}

// takeHandOver takes a token or a one-time code, with its state, out of the
// address bar at once, so that it is neither shared with the link nor kept in
// the history; null where there is none. It signs nobody in.
export function takeHandOver(location, history) {
  const found = location.hash.match(/[#?&](token|code)=([^&]+)/);
  if (!found) return null;
  const [whole, kind, value] = found;
  const [stated, state] = location.hash.match(/[#?&]state=([^&]*)/) ?? ['', ''];
  const rest = location.hash.replace(whole, '').replace(stated, '').replace(/^[?&]/, '#');
  history.replaceState(null, '', location.pathname + location.search + rest);
  return { kind, value: decoded(value), state: decoded(state) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // not ours, and not taken
  }
}

// claimsOf reads a JWT's claims: the buyer's name for display and to keep two
// buyers' memories on one device apart, and its end for a warning. Nothing is
// decided by them.
export function claimsOf(token) {
  try {
    const payload = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
    const bytes = Uint8Array.from(atob(payload), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    return {};
  }
}
