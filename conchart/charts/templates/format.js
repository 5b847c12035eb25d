/* Numbers to text. Times are whole nanoseconds since the capture's first packet. */

const UNITS = [
  { name: "s", ns: 1e9, digits: 9 },
  { name: "ms", ns: 1e6, digits: 6 },
  { name: "µs", ns: 1e3, digits: 3 },
  { name: "ns", ns: 1, digits: 0 },
];

const unitFor = (ns) => UNITS.find((unit) => Math.abs(ns) >= unit.ns) || UNITS[3];

/* Thousands apart by thin spaces. */
const grouped = (whole) => String(whole).replace(/\B(?=(\d{3})+$)/g, "\u2009");

/* All digits of `ns` in the given unit: 12345678 is "12.345678" in ms. Digits, not floats, so nothing is rounded. */
function digitsIn(unit, ns) {
  if (unit.digits === 0) return grouped(Math.abs(ns));
  const text = String(Math.abs(ns)).padStart(unit.digits + 1, "0");
  return grouped(text.slice(0, -unit.digits)) + "." + text.slice(-unit.digits);
}

const exact = (ns) => {
  const unit = unitFor(ns);
  return `${ns < 0 ? "−" : ""}${digitsIn(unit, ns)}\u00a0${unit.name}`;
};

/* Three significant digits: for places where a glance must do. */
const brief = (ns) => {
  const unit = unitFor(ns);
  const value = ns / unit.ns;
  return `${value >= 100 || unit.ns === 1 ? Math.round(value) : value.toPrecision(3)}\u00a0${unit.name}`;
};

/* Milliseconds with three decimals: columns of a table compare best in one unit. */
const inMs = (ns) => {
  const [whole, rest] = (ns / 1e6).toFixed(3).split(".");
  return `${grouped(whole)}.${rest}`;
};

const count = grouped;

const bytes = (n) => {
  if (n === null) return "?";
  if (n < 1000) return `${n}\u00a0B`;
  const step = n < 1e6 ? [1e3, "kB"] : n < 1e9 ? [1e6, "MB"] : [1e9, "GB"];
  return `${(n / step[0]).toPrecision(3)}\u00a0${step[1]}`;
};

const plural = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

/* For text that plotly draws: it reads tags and entities, so none may be left. */
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

const clip = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

/* A piece of an SVG picture. */
function svg(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

/* An element with children; text only ever becomes a text node. */
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}
