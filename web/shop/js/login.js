// The way to the shop's login and back. The shop's login is a page of its own;
// it leads back here with #code=…&state=…: the code is exchanged for a buyer's
// token, and the state is the one that this tab has left with.

import { fill, pageAddress } from './address.js';
import { forget, recall, remember } from './memory.js';
import { claimsOf } from './session.js';
import { confirmBox } from './view/confirm.js';

const PLACE = 'seckill_place';
const STATE = 'seckill_state';
const STATE_BYTES = 16;

// loginAddress is the shop's login page with the address to come back to and
// the state to bring along. The route stays behind, because the code comes in
// the fragment.
export function loginAddress(loginURL, location, state) {
  return fill(loginURL, { return: pageAddress(location), state }, location.href);
}

export function leaveForLogin(loginURL, location) {
  remember(PLACE, location.hash);
  location.assign(loginAddress(loginURL, location, newState()));
}

// newState is kept by this tab alone: what another one went to fetch is not
// this one's. Where it cannot be kept, the shopper is asked instead.
function newState() {
  const bytes = crypto.getRandomValues(new Uint8Array(STATE_BYTES));
  const state = Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
  try {
    sessionStorage.setItem(STATE, state);
  } catch {
    // The way back will ask.
  }
  return state;
}

// isOwnState reports, once, whether this tab has left with a state.
export function isOwnState(state) {
  try {
    if (!state || sessionStorage.getItem(STATE) !== state) return false;
    sessionStorage.removeItem(STATE);
    return true;
  } catch {
    return false;
  }
}

// isWanted reports whether the visitor wants to be who a link says. A code that
// this tab went to fetch has its state. Any other link may be somebody else's,
// under whose name its follower would shop and pay: the visitor is asked, unless
// the code is of the buyer who is signed in here already.
export async function isWanted(app, handed, signal) {
  const isCode = handed.kind === 'code';
  if (isCode && isOwnState(handed.state)) return true;
  const buyer = String(claimsOf(handed.value).sub ?? '');
  if (!buyer) throw new Error('a link with a sign-in of nobody');
  if (isCode && buyer === app.session.buyer) return true;
  return confirmBox(app, 'hand_over', signal, { buyer });
}

// comeBack returns to where the shopper had left, and signs in with what was
// handed over. Who cannot be signed in is back there as well.
export async function comeBack(app, handed, location) {
  const place = recall(PLACE);
  forget(PLACE);
  if (place && location.hash === '') location.hash = place;
  const { token } = handed.kind === 'code' ? await app.api.login(handed.value) : { token: handed.value };
  app.session.signIn(token);
}
