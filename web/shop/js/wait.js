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

const bell = new EventTarget();

// wake ends every waitSeen of a page that somebody looks at: what it waited to
// ask can be asked now, because the network is back.
export function wake() {
  bell.dispatchEvent(new Event('wake'));
}

// waitSeen is wait for what only matters while somebody looks: it goes on as
// long as the page is hidden, and ends at once when the shopper comes back, so
// that a phone out of the pocket shows the present.
export function waitSeen(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(stopped());
    const onSeen = () => !document.hidden && end(resolve);
    const onStop = () => end(() => reject(stopped()));
    const timer = setTimeout(onSeen, ms);
    document.addEventListener('visibilitychange', onSeen);
    bell.addEventListener('wake', onSeen);
    signal?.addEventListener('abort', onStop);
    function end(settle) {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', onSeen);
      bell.removeEventListener('wake', onSeen);
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

// about spreads a regular wait by a fifth to either side.
export const about = (ms, random = Math.random) => ms * (0.8 + random() * 0.4);
