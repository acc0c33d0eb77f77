// Proof of work, from the page's side.

import { stopped } from './wait.js';

// share is how likely the work would be done after so many tries: an honest
// bar, because luck has no memory and no end.
export const share = (tries, difficulty) => 1 - Math.exp(-tries / 2 ** difficulty);

// prove has a worker find the answer; onShare(0…1) tells how far it is.
export function prove({ challenge_id: id, difficulty }, onShare, signal) {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(stopped());
    const worker = new Worker(new URL('./work.js', import.meta.url));
    const end = (settle) => {
      worker.terminate();
      signal.removeEventListener('abort', onStop);
      settle();
    };
    const onStop = () => end(() => reject(stopped()));
    signal.addEventListener('abort', onStop);
    worker.onmessage = ({ data: { answer, tries } }) => {
      if (answer) end(() => resolve(answer));
      else onShare(share(tries, difficulty));
    };
    worker.onerror = () => end(() => reject(Object.assign(new Error('worker'), { code: 'unknown_challenge' })));
    worker.postMessage({ id, difficulty });
  });
}
