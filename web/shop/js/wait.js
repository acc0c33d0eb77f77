// Waiting that ends early when its owner stops.

export const stopped = () => new DOMException('stopped', 'AbortError');

export function wait(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(stopped());
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
    function done() {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }
    function onAbort() {
      clearTimeout(timer);
      reject(stopped());
    }
  });
}

// waitSeen is wait for what only matters while somebody looks: it goes on as
// long as the page is hidden, and ends at once when the shopper comes back, so
// that a phone out of the pocket shows the present.
export function waitSeen(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(stopped());
    const timer = setTimeout(() => !document.hidden && end(resolve), ms);
    const onSeen = () => !document.hidden && end(resolve);
    const onStop = () => end(() => reject(stopped()));
    document.addEventListener('visibilitychange', onSeen);
    signal?.addEventListener('abort', onStop);
    function end(settle) {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onSeen);
      signal?.removeEventListener('abort', onStop);
      settle();
    }
  });
}

// backoff doubles from base to cap and spreads each wait over its upper half,
// so that a crowd that was refused together does not return together.
export function backoff(attempt, base, cap, random = Math.random) {
  const full = Math.min(cap, base * 2 ** attempt);
  return full / 2 + (random() * full) / 2;
}
