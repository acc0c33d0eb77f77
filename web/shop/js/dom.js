// Elements from code. Text always goes in as text, never as markup, so that a
// product's name cannot become part of the page.

const SVG = 'http://www.w3.org/2000/svg';

// h('p', { class: 'note', onclick: f, hidden: true }, 'text', node, …)
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

// icon draws one stroked path on a 24 × 24 field; it is decoration only.
export function icon(path) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const line = document.createElementNS(SVG, 'path');
  line.setAttribute('d', path);
  svg.append(line);
  return svg;
}

// setText avoids touching the page when nothing changed: live regions would
// otherwise speak the same words again.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
