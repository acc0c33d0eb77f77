// What the button and the line under it say. Pure, so that every honest state
// can be seen in one place.

export const CLOSED = new Set(['sold_out', 'paused', 'ended']);

// What signing in is for, by the product's status.
export const SIGN_IN = { upcoming: 'sign_in_ready', on_sale: 'sign_in_buy', paused: 'sign_in_buy', sold_out: 'sign_in_return', ended: '' };

// faceOf takes the product's status now, the phase of the press, and what is
// known of the buyer; it returns
//   {label, values, enabled, lit, busy, to, message, tone}
// where to is an order number that the button leads to instead of buying, and
// phase.left is the ms until the phase's next step. checks: a person is asked for
// an answer before the purchase; a press that waits for it is in no queue yet.
export function faceOf({ status, phase, signedIn, mine, limit, checks, returns }) {
  const values = { n: Math.max(1, Math.ceil(phase.left / 1000)) };
  if (phase.kind === 'asking' && phase.unanswered) {
    return { label: 'buy_answer', enabled: false, message: phase.message, tone: 'calm' };
  }
  if (phase.kind === 'asking') {
    return { label: 'buy_asking', enabled: false, busy: true, message: phase.message, tone: 'calm' };
  }
  if (phase.kind === 'waiting') {
    return { label: 'buy_waiting', values, enabled: false, busy: true, message: `e_${phase.code}`, tone: 'warm' };
  }
  if (mine && limit === 1) {
    const message = phase.code === 'already_purchased' ? 'e_already_purchased' : 'say_mine';
    return { label: 'buy_view', enabled: true, to: mine, message, tone: 'good' };
  }
  if (status === 'upcoming') return { label: 'buy_soon', enabled: false, message: checks ? 'say_check' : 'say_ready', tone: 'calm' };
  if (status === 'sold_out') return { label: status, enabled: false, message: soldOut(returns), tone: 'calm' };
  if (CLOSED.has(status)) return { label: status, enabled: false, message: `say_${status}`, tone: 'calm' };
  if (!signedIn) return { label: 'buy_sign_in', enabled: true, message: '', tone: 'calm' };
  const refusal = phase.kind === 'refused' ? phase.message : '';
  const cooling = phase.kind === 'refused' && phase.left > 0;
  return {
    label: cooling ? 'buy_cooling' : 'buy', values, enabled: !cooling, lit: !cooling,
    message: refusal || 'fair', tone: refusal ? 'warm' : 'calm',
  };
}

// soldOut tells whether waiting makes sense: returns is the ms for which a
// unit may still come back, NaN where the server does not say.
function soldOut(returns) {
  if (Number.isNaN(returns)) return 'say_sold_out';
  return returns > 0 ? 'say_sold_out_until' : 'say_sold_out_all';
}
