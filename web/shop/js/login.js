// The way to the shop's login and back. The shop's login is a page of its own;
// it leads back here with #code=…, which is exchanged for a buyer's token.

import { forget, recall, remember } from './memory.js';

const PLACE = 'seckill_place';

// loginAddress is the shop's login page with the address to come back to: in
// place of {return} where the address has that, else as a parameter "return".
// The route stays behind, because the code comes in the fragment.
export function loginAddress(loginURL, location) {
  const back = location.origin + location.pathname + location.search;
  if (loginURL.includes('{return}')) return loginURL.replaceAll('{return}', encodeURIComponent(back));
  const url = new URL(loginURL, location.href);
  url.searchParams.set('return', back);
  return url.href;
}

export function leaveForLogin(loginURL, location) {
  remember(PLACE, location.hash);
  location.assign(loginAddress(loginURL, location));
}

// comeBack exchanges a code and returns to where the shopper had left.
export async function comeBack(app, code, location) {
  const place = recall(PLACE);
  forget(PLACE);
  const { token } = await app.api.login(code);
  if (place && location.hash === '') location.hash = place;
  app.session.signIn(token);
}
