// What the page remembers across reloads. localStorage can be absent or full
// (private windows, strict settings); the page then remembers until it closes.

const fallback = new Map();

export function recall(key) {
  try {
    return localStorage.getItem(key) ?? fallback.get(key) ?? null;
  } catch {
    return fallback.get(key) ?? null;
  }
}

export function remember(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    fallback.set(key, value);
  }
}

export function forget(key) {
  fallback.delete(key);
  try {
    localStorage.removeItem(key);
  } catch {
    // Nothing was kept, so nothing is left to forget.
  }
}

export function recallJSON(key) {
  try {
    return JSON.parse(recall(key));
  } catch {
    return null;
  }
}

export function rememberJSON(key, value) {
  remember(key, JSON.stringify(value));
}
