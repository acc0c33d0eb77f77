// Who is shopping. The shop's own site puts a bearer token into
// localStorage.seckill_token, or links here with #token=…

import { forget, recall, remember } from './memory.js';

const TOKEN = 'seckill_token';
const DEMO = 'seckill_demo'; // set while the token came from the demo login

export class Session extends EventTarget {
  constructor() {
    super();
    this.token = recall(TOKEN) ?? '';
  }

  get buyer() { return subjectOf(this.token); }
  get signedIn() { return this.token !== ''; }
  get fromDemo() { return recall(DEMO) !== null; }

  signIn(token, { demo = false } = {}) {
    remember(TOKEN, token);
    if (demo) remember(DEMO, '1');
    else forget(DEMO);
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

  // adoptFragment takes a token out of the address bar, so that it is neither
  // shared with the link nor kept in the history.
  adoptFragment(location, history) {
    const found = location.hash.match(/[#?&]token=([^&]+)/);
    if (!found) return;
    const rest = location.hash.replace(found[0], '');
    history.replaceState(null, '', location.pathname + location.search + rest);
    this.signIn(decodeURIComponent(found[1]));
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

// subjectOf reads the buyer's name out of a JWT, for display and to keep two
// buyers' memories on one device apart. Nothing is decided by it.
export function subjectOf(token) {
  try {
    const payload = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
    const bytes = Uint8Array.from(atob(payload), (c) => c.charCodeAt(0));
    return String(JSON.parse(new TextDecoder().decode(bytes)).sub ?? '');
  } catch {
    return '';
  }
}
