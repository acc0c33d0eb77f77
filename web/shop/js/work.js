// The proof of work, in a Web Worker so that the page stays quick: find digits
// for which SHA-256(challenge_id + ":" + digits) begins with enough zero bits.
// A classic script with a hash of its own: module workers are too young for
// many phones, and crypto.subtle is asynchronous (slower by far for a million
// short texts) and missing where a shop is tested over plain http.

'use strict';

const REPORT_EVERY = 1 << 15; // tries between two reports: some 20 a second on a phone
const BLOCK = 64;

const K = new Uint32Array(64);
const START = new Uint32Array(8);
fillConstants();

// fillConstants takes the fractional bits of the roots of the first primes, as
// the standard (FIPS 180-4) defines them.
function fillConstants() {
  const fraction = (x) => Math.floor((x - Math.floor(x)) * 2 ** 32);
  for (let n = 2, i = 0; i < 64; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) if (n % d === 0) prime = false;
    if (!prime) continue;
    if (i < 8) START[i] = fraction(Math.sqrt(n));
    K[i++] = fraction(Math.cbrt(n));
  }
}

const W = new Uint32Array(64);

// compress takes one block of bytes into the state.
function compress(state, bytes, at) {
  for (let i = 0; i < 16; i++, at += 4) {
    W[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
  }
  for (let i = 16; i < 64; i++) {
    const x = W[i - 15], y = W[i - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    W[i] = (W[i - 16] + s0 + W[i - 7] + s1) | 0;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + W[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + t1) | 0;
    d = c; c = b; b = a; a = (t1 + t2) | 0;
  }
  state[0] += a; state[1] += b; state[2] += c; state[3] += d;
  state[4] += e; state[5] += f; state[6] += g; state[7] += h;
}

// finder returns a function that tells the leading zero bits of the hash of
// the prefix and some digits. The prefix's whole blocks are hashed once.
function finder(prefix) {
  const text = new TextEncoder().encode(prefix);
  const whole = text.length - (text.length % BLOCK);
  const begun = START.slice();
  for (let at = 0; at < whole; at += BLOCK) compress(begun, text, at);
  const rest = text.subarray(whole);
  const state = new Uint32Array(8);
  const tail = new Uint8Array(2 * BLOCK);
  return (digits) => {
    tail.fill(0);
    tail.set(rest);
    let end = rest.length;
    for (let i = 0; i < digits.length; i++) tail[end++] = digits.charCodeAt(i);
    tail[end] = 0x80;
    const size = end + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
    const bits = (whole + end) * 8;
    for (let i = 0; i < 4; i++) tail[size - 1 - i] = bits >>> (8 * i);
    state.set(begun);
    for (let at = 0; at < size; at += BLOCK) compress(state, tail, at);
    return state[0] !== 0 ? Math.clz32(state[0]) : 32 + Math.clz32(state[1]);
  };
}

self.onmessage = ({ data: { id, difficulty } }) => {
  const zeros = finder(`${id}:`);
  // Shoppers begin apart, or all would try the same digits in the same order.
  const from = Math.floor(Math.random() * 2 ** 40);
  for (let tries = 0; ; tries++) {
    const answer = String(from + tries);
    if (zeros(answer) >= difficulty) {
      self.postMessage({ answer });
      return;
    }
    if (tries % REPORT_EVERY === 0) self.postMessage({ tries });
  }
};
