// The public API of the engine.

const TIMEOUT_MS = 10_000;
const STALL_MS = 45_000; // a stream silent for this long is taken for dead
const LIST_PAGES = 20; // pages of the product list that are read, 100 products each

// Codes that the page knows; any other is read by its HTTP status.
const KNOWN = new Set([
  'bad_request', 'unauthenticated', 'token_invalid', 'not_found', 'not_started', 'sold_out',
  'already_purchased', 'wrong_state', 'ended', 'rate_limited', 'busy', 'too_hot', 'paused',
]);
const BY_STATUS = {
  400: 'bad_request', 401: 'unauthenticated', 403: 'token_invalid', 404: 'not_found',
  409: 'wrong_state', 410: 'ended', 429: 'rate_limited',
};

// Problem is an answer that is not the wanted one. Code "offline" is ours: no
// answer came at all, so what the server did is unknown.
export class Problem extends Error {
  constructor(code, { status = 0, document = {}, retryAfterMs = 0 } = {}) {
    super(document.detail || document.title || code);
    this.code = code;
    this.status = status;
    this.orderNo = document.order_no || document.order_nos?.[0] || '';
    this.retryAfterMs = retryAfterMs;
  }
}

export function codeOf(status, code) {
  if (KNOWN.has(code)) return code;
  return BY_STATUS[status] ?? (status >= 500 ? 'busy' : 'bad_request');
}

// retryAfter reads seconds or a date; the date is taken against the answer's
// own Date header, because the local clock may be wrong.
export function retryAfter(headers) {
  const value = headers.get('Retry-After');
  if (!value) return 0;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const ms = Date.parse(value) - Date.parse(headers.get('Date'));
  return ms > 0 ? ms : 0;
}

// baseOf is where the API is: the page's own address, or where the page's
// export says (it may come from a CDN).
export function baseOf(document) {
  const named = document.querySelector('meta[name="seckill-api"]')?.content;
  return new URL(named ? named.replace(/\/*$/, '/') : '.', document.baseURI).href;
}

export class API {
  // session gives the bearer token; language gives what texts to ask for;
  // network is told of each answer and of each silence.
  constructor(base, session, language) {
    Object.assign(this, { base, session, language, network: null });
  }

  // What is the same for everybody is asked for without a login: the crowd asks
  // for it all the time, and a cache may answer.
  time() { return this.ask('GET', 'api/v1/time', { bearer: '' }); }
  // products reads the list page by page. cut says that there are more products.
  async products(signal) {
    const products = [];
    let page = {};
    for (let pages = 0; pages < LIST_PAGES; pages++) {
      page = await this.ask('GET', `api/v1/products${page.next ? `?after=${page.next}` : ''}`, { signal, bearer: '' });
      products.push(...page.products);
      if (!page.next) break;
    }
    return { products, now_ms: page.now_ms, cut: Boolean(page.next) };
  }
  product(id, signal) { return this.ask('GET', `api/v1/products/${id}`, { signal, bearer: '' }); }

  challenge(id, body, signal) { return this.ask('POST', `api/v1/products/${id}/challenge`, { body, signal }); }
  token(id, body, signal) { return this.ask('POST', `api/v1/products/${id}/token`, { body, signal }); }
  buy(id, body, key, signal) {
    return this.ask('POST', `api/v1/products/${id}/orders`, { body, signal, headers: { 'Idempotency-Key': key } });
  }

  orders(signal) { return this.ask('GET', 'api/v1/orders', { signal }); }
  order(no, signal) { return this.ask('GET', `api/v1/orders/${no}`, { signal }); }
  // linkedOrder reads an order by its link, whoever is signed in here.
  linkedOrder(no, link, signal) {
    return this.ask('GET', `api/v1/orders/${no}?link=${encodeURIComponent(link)}`, { signal, bearer: '' });
  }

  pay(no, provider, signal) { return this.ask('POST', `api/v1/orders/${no}/payment`, { body: { provider }, signal }); }
  cancel(no, signal) { return this.ask('POST', `api/v1/orders/${no}/cancel`, { body: {}, signal }); }

  // What is about signing in goes without the login that it replaces.
  page() { return this.ask('GET', 'api/v1/page', { bearer: '' }); }
  login(code) { return this.ask('POST', 'api/v1/login', { body: { code }, bearer: '' }); }
  demoLogin(user) { return this.ask('GET', `demo/login?user=${encodeURIComponent(user)}`, { bearer: '' }); }

  async ask(method, path, { signal, ...request } = {}) {
    const guard = deadline(TIMEOUT_MS, signal);
    try {
      const response = await this.send(method, path, { ...request, signal: guard.signal });
      return await response.json();
    } catch (err) {
      if (signal?.aborted || err instanceof Problem) throw err;
      this.network?.missed();
      throw new Problem('offline');
    } finally {
      guard.clear();
    }
  }

  // send returns a response that is ok, or throws the problem.
  async send(method, path, { body, headers = {}, signal, bearer = this.session.token }) {
    const response = await fetch(this.base + path, {
      method, signal, cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer',
      headers: {
        Accept: 'application/json',
        'Accept-Language': this.language(),
        ...(bearer && { Authorization: `Bearer ${bearer}` }),
        ...(body && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: body && JSON.stringify(body),
    });
    this.network?.answered();
    if (response.ok) return response;
    const document = await response.json().catch(() => ({}));
    const code = codeOf(response.status, document.code);
    if (code === 'unauthenticated') this.session.refused(bearer);
    throw new Problem(code, { status: response.status, document, retryAfterMs: retryAfter(response.headers) });
  }

  // orderEvents calls onOrder with each state of an order until the stream
  // ends. EventSource cannot carry a bearer token, so the stream is read here.
  async orderEvents(no, onOrder, signal, link = '') {
    const guard = deadline(STALL_MS, signal);
    try {
      const path = `api/v1/orders/${no}/events${link && `?link=${encodeURIComponent(link)}`}`;
      const response = await this.send('GET', path, {
        headers: { Accept: 'text/event-stream' }, signal: guard.signal, ...(link && { bearer: '' }),
      });
      if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) throw new Problem('not_found');
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const feed = eventReader((data) => onOrder(JSON.parse(data)));
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        guard.extend();
        feed(value);
      }
    } finally {
      guard.clear();
    }
  }
}

// eventReader takes the text of a server-sent stream in any pieces and calls
// onData once per event that has data.
export function eventReader(onData) {
  let rest = '';
  let data = [];
  return (text) => {
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
      else if (line === '' && data.length > 0) {
        onData(data.join('\n'));
        data = [];
      }
    }
  };
}

// deadline aborts after ms, or with its parent. (AbortSignal.any and .timeout
// are too young for many phones.)
function deadline(ms, parent) {
  const controller = new AbortController();
  const abort = () => controller.abort();
  let timer = setTimeout(abort, ms);
  if (parent?.aborted) abort();
  parent?.addEventListener('abort', abort, { once: true });
  return {
    signal: controller.signal,
    extend() {
      clearTimeout(timer);
      timer = setTimeout(abort, ms);
    },
    clear() {
      clearTimeout(timer);
      parent?.removeEventListener('abort', abort);
    },
  };
}
