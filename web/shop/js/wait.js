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

// waitSeen is wait, cut short when the shopper comes back to the page: a phone
// that was in a pocket should show the present at once.
export async function waitSeen(ms, signal) {
  const cut = new AbortController();
  const onSeen = () => document.visibilityState === 'visible' && cut.abort();
  const onStop = () => cut.abort();
  document.addEventListener('visibilitychange', onSeen);
  signal?.addEventListener('abort', onStop, { once: true });
  try {
    if (!signal?.aborted) await wait(ms, cut.signal).catch(() => {});
  } finally {
    document.removeEventListener('visibilitychange', onSeen);
    signal?.removeEventListener('abort', onStop);
  }
  if (signal?.aborted) throw stopped();
}

// backoff doubles from base to cap and spreads each wait over its upper half,
// so that a crowd that was refused together does not return together.
export function backoff(attempt, base, cap, random = Math.random) {
  const full = Math.min(cap, base * 2 ** attempt);
  return full / 2 + (random() * full) / 2;
}
