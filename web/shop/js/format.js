// Numbers and times as people read them.

// moneyParts splits an amount for display: symbol, whole, fraction. Amounts are
// in the currency's smallest unit, of which Intl knows the digits.
export function moneyParts(cents, currency, locale) {
  const format = new Intl.NumberFormat(locale, { style: 'currency', currency });
  const digits = format.resolvedOptions().maximumFractionDigits;
  return format.formatToParts(cents / 10 ** digits);
}

export function money(cents, currency, locale) {
  return moneyParts(cents, currency, locale).map((part) => part.value).join('');
}

// countdown rounds up, so that 00:00:00 appears at the instant itself and not
// a second before.
export function countdown(ms) {
  const total = Math.max(0, Math.ceil(ms / 1000));
  const two = (n) => String(n).padStart(2, '0');
  return {
    days: Math.floor(total / 86400),
    hours: two(Math.floor(total / 3600) % 24),
    minutes: two(Math.floor(total / 60) % 60),
    seconds: two(total % 60),
  };
}

// shortCountdown is mm:ss, with hours only when there are some. It rounds, so
// that half an hour begins as 30:00 whatever the clock's error of a moment.
export function shortCountdown(ms) {
  const { days, hours, minutes, seconds } = countdown(Math.round(ms / 1000) * 1000);
  const allHours = days * 24 + Number(hours);
  return allHours > 0 ? `${String(allHours).padStart(2, '0')}:${minutes}:${seconds}` : `${minutes}:${seconds}`;
}

export function dateTime(iso, locale) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '';
  return new Intl.DateTimeFormat(locale, { month: 'short', day: 'numeric', ...timeOf(at) }).format(at);
}

const SOON_MS = 12 * 3_600_000;

// soonTime leaves the date out when the time is near enough to do without.
export function soonTime(iso, now, locale) {
  const at = new Date(iso);
  if (!(at.getTime() - now < SOON_MS)) return dateTime(iso, locale);
  return new Intl.DateTimeFormat(locale, timeOf(at)).format(at);
}

// timeOf shows seconds only where a sale starts at odd ones.
function timeOf(at) {
  return { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', ...(at.getSeconds() > 0 && { second: '2-digit' }) };
}

// initials make the product's picture: two letters, or one Chinese character.
export function initials(name) {
  const chars = [...name.trim()];
  const first = chars[0] ?? '?';
  if (first > '\u2e7f') return first;
  const second = chars.slice(1).find((c) => /[\p{Lu}\p{N}]/u.test(c)) ?? chars[1] ?? '';
  return (first + second).trim();
}
