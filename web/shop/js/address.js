// Addresses of the shop around this page: its login, its cashier, its check.

// fill puts values into an address: in place of {name} where it has that, else
// as a parameter of that name.
export function fill(address, values, base) {
  const filled = address.replace(/\{(\w+)\}/g, (whole, name) => (Object.hasOwn(values, name) ? encodeURIComponent(values[name]) : whole));
  const url = new URL(filled, base);
  for (const [name, value] of Object.entries(values)) {
    if (!address.includes(`{${name}}`)) url.searchParams.set(name, value);
  }
  return url.href;
}

// pageAddress is this page without its route.
export const pageAddress = ({ origin, pathname, search }) => origin + pathname + search;
