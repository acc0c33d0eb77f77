// How soon an open page looks at its product again.

import { about } from '../wait.js';

// What a product may be: the wait at first, the longest, and how many looks
// without news keep the first. Whoever looks wants to see within seconds that all
// is sold or that a unit has come back; but the whole crowd looks, so that waits
// grow when nothing happens for some minutes. docs/strategies.md says what
// 100,000 open pages ask for: keep it true.
const LOOKS = {
  upcoming: [60_000, 60_000, 0],
  on_sale: [5_000, 15_000, 36],
  paused: [5_000, 15_000, 36],
  returning: [4_000, 8_000, 45], // sold out, and units may come back
  sold_out: [4_000, 60_000, 0],
  ended: [60_000, 60_000, 0],
};
const GROWTH = 1.5;

// In the last seconds before the start nobody asks anything: the clock alone
// lights the button. The first look after it is spread over as long as a look
// on sale takes.
const HUSH_MS = 15_000;

// lookIn is the wait, in ms. left is the time until the start, returns that for
// which units may come back (NaN where the server does not say), looks how many
// have brought no news, and chance a number between 0 and 1.
export function lookIn({ status, left, returns, looks }, chance) {
  const [first, most, patience] = LOOKS[status === 'sold_out' && returns > 0 ? 'returning' : status];
  const ms = about(Math.min(most, first * GROWTH ** Math.max(0, looks - patience)), () => chance);
  return status === 'upcoming' && left - ms < HUSH_MS ? left + LOOKS.on_sale[0] * chance : ms;
}
