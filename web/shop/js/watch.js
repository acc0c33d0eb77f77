// Following one order: the event stream where it works, polling where not.

import { backoff, waitSeen } from './wait.js';

const RETRY_BASE_MS = 1_000;
const RETRY_CAP_MS = 10_000;
const STREAM_TRIES = 2; // streams that bring nothing before polling takes over

export const isSettled = (order) => order.status !== 'queued' && order.status !== 'pending';

// After these, asking again would bring the same.
const FINAL = new Set(['not_found', 'unauthenticated', 'token_invalid', 'bad_request']);

// watchOrder calls onOrder with each state until the order is settled, and
// onTrouble when it cannot be read. read asks for the order; stream calls back
// with each change. An order that is not this buyer's ends it.
export async function watchOrder({ read, stream }, { onOrder, onTrouble, signal }) {
  let last = null;
  let quiet = 0; // rounds without news
  let barren = 0; // streams that brought nothing
  const open = () => !signal.aborted && !(last && isSettled(last));
  const take = (order) => {
    if (order.status !== last?.status) quiet = 0;
    last = order;
    onOrder(order);
  };
  const takeStreamed = (order) => {
    barren = 0;
    take(order);
  };
  while (open()) {
    let floor = 0;
    try {
      if (barren < STREAM_TRIES) {
        barren++;
        await stream(takeStreamed, signal).catch(() => {});
      }
      if (open()) take(await read(signal));
    } catch (err) {
      if (signal.aborted) return;
      onTrouble(err);
      if (FINAL.has(err.code)) return;
      floor = err.retryAfterMs ?? 0;
    }
    if (open()) await waitSeen(Math.max(floor, backoff(quiet++, RETRY_BASE_MS, RETRY_CAP_MS)), signal).catch(() => {});
  }
}
