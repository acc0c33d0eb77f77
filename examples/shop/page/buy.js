// Places the order at the engine, not at the shop's server: the crowd of a
// flash sale never reaches the shop.
const maxTries = 5;
const button = document.querySelector('#buy');
const message = document.querySelector('#message');
const { engine, product, token, key, ref, busy } = button.dataset;

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// A purchase keeps its key until it is decided. "busy" or no answer means
// "unknown": the same request under the same key finds the order, if there is one.
const slot = `purchase-${product}`;

async function purchase() {
  sessionStorage[slot] ??= key;
  for (let tries = 0; tries < maxTries; tries++) {
    if (tries > 0) await wait(300 * 2 ** tries * (0.5 + Math.random()));
    let answer;
    try {
      answer = await fetch(`${engine}/api/v1/products/${product}/orders`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', 'Idempotency-Key': sessionStorage[slot] },
        body: JSON.stringify({ quantity: 1, ref }),
        signal: AbortSignal.timeout(5000),
      });
    } catch {
      continue;
    }
    if (answer.status === 503 || answer.status === 429) continue;
    const result = await answer.json();
    delete sessionStorage[slot];
    if (answer.status !== 202) return { refusal: result.title };
    return { orderNo: result.order_no };
  }
  return { refusal: busy };
}

button.addEventListener('click', async () => {
  button.disabled = true;
  const { orderNo, refusal } = await purchase();
  if (orderNo) location.assign(`/orders/${orderNo}`);
  message.textContent = refusal ?? '';
  button.disabled = false;
});
