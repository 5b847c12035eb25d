/* Numbers to text. Times are whole nanoseconds since the capture's first packet. */

const UNITS = [
  { name: "s", ns: 1e9, digits: 9 },
  { name: "ms", ns: 1e6, digits: 6 },
  { name: "µs", ns: 1e3, digits: 3 },
  { name: "ns", ns: 1, digits: 0 },
];

/** @param {number} ns */
export const unitFor = (ns) => UNITS.find((unit) => Math.abs(ns) >= unit.ns) || UNITS[3];

/**
 * Thousands apart by thin spaces.
 * @param {number | string} whole
 */
export const grouped = (whole) => String(whole).replace(/\B(?=(\d{3})+$)/g, "\u2009");

/**
 * All digits of `ns` in the given unit: 12345678 is "12.345678" in ms. Digits, not floats, so nothing is rounded.
 * @param {{digits: number}} unit
 * @param {number} ns
 */
function digitsIn(unit, ns) {
  if (unit.digits === 0) return grouped(Math.abs(ns));
  const text = String(Math.abs(ns)).padStart(unit.digits + 1, "0");
  return grouped(text.slice(0, -unit.digits)) + "." + text.slice(-unit.digits);
}

/** @param {number} ns */
export const exact = (ns) => {
  const unit = unitFor(ns);
  return `${ns < 0 ? "−" : ""}${digitsIn(unit, ns)}\u00a0${unit.name}`;
};

/**
 * All digits but the zeros at the end, for times that are round.
 * @param {number} ns
 */
export const shortly = (ns) => exact(ns).replace(/\.0+(?=\u00a0)|(?<=\.\d*)0+(?=\u00a0)/, "");

/**
 * Three significant digits of `ns / unit`; "1000" where it needs a larger unit.
 * @param {number} ns
 * @param {number} unit
 */
function threeDigits(ns, unit) {
  for (const digits of [2, 1, 0]) {
    const scaled = Math.floor((ns * 10 ** digits * 2 + unit) / (2 * unit));
    if (scaled < 1000) return (scaled / 10 ** digits).toFixed(unit > 1 ? digits : 0);
  }
  return "1000";
}

/**
 * As `format_ns` of labels/units.py writes it, for places where a glance must do: "812 µs", "1.63 ms", "3 min 12 s".
 * @param {number} ns
 * @returns {string}
 */
export function brief(ns) {
  if (ns < 0) return `-${brief(-ns)}`;
  const last = UNITS.findLast((unit) => threeDigits(ns, unit.ns) !== "1000") || UNITS[0];
  const text = threeDigits(ns, last.ns);
  if (last !== UNITS[0] || (ns < 60e9 && text !== "60.0")) return `${text}\u00a0${last.name}`;
  const seconds = Math.floor((ns + 5e8) / 1e9);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}\u00a0min` + (seconds % 60 ? ` ${seconds % 60}\u00a0s` : "");
  const wholly = Math.floor((ns + 30e9) / 60e9);
  return `${Math.floor(wholly / 60)}\u00a0h` + (wholly % 60 ? ` ${wholly % 60}\u00a0min` : "");
}

/**
 * A time that somebody typed, or that `exact` wrote: "1.25 s", "300ms", "-4 us"; without a unit it is in ms. Null if it is
 * none.
 * @param {string} text
 */
export function nanoseconds(text) {
  const [, minus, whole, rest = "", name = "ms"] = /^([-−]?)(\d+)(?:\.(\d*))?(s|ms|[µμu]s|ns)?$/.exec(text.replace(/\s/g, "")) || [];
  if (whole === undefined) return null;
  const { digits } = UNITS.find((unit) => unit.name === name.replace(/[μu]s/, "µs")) || UNITS[1];
  // Digits again, not floats.
  const ns = Number(whole + rest.slice(0, digits).padEnd(digits, "0"));
  return minus && ns ? -ns : ns;
}

/**
 * Milliseconds with three decimals: columns of a table compare best in one unit.
 * @param {number} ns
 */
export const inMs = (ns) => {
  const [whole, rest] = (ns / 1e6).toFixed(3).split(".");
  return `${grouped(whole)}.${rest}`;
};

export const count = grouped;

/**
 * A part of a whole in percent, as units.py has it: what is there never reads 0 %, what is not whole never 100 %.
 * @param {number} part
 * @param {number} whole
 */
export function share(part, whole) {
  if (!whole || !part) return "0\u00a0%";
  const percent = Math.round((100 * part) / whole);
  if (percent === 0) return "<1\u00a0%";
  return percent === 100 && part < whole ? ">99\u00a0%" : `${percent}\u00a0%`;
}

/** @param {number | null} n */
export const bytes = (n) => {
  if (n === null) return "?";
  if (n < 1000) return `${n}\u00a0B`;
  const [size, unit] = n < 1e6 ? /** @type {const} */ ([1e3, "kB"]) : n < 1e9 ? /** @type {const} */ ([1e6, "MB"]) : /** @type {const} */ ([1e9, "GB"]);
  return `${(n / size).toPrecision(3)}\u00a0${unit}`;
};

/**
 * @param {number} n
 * @param {string} what
 */
export const plural = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

/**
 * For text that plotly draws: it reads tags and entities, so none may be left.
 * @param {string} text
 */
export const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/**
 * @param {string} text
 * @param {number} length
 */
export const clip = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

/**
 * A piece of an SVG picture.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 */
export function svg(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  return node;
}

/**
 * An element with children; text only ever becomes a text node.
 * @typedef {Node | string | null | undefined} Child
 * @param {string} tag
 * @param {Record<string, string | number | boolean | null | undefined>} attributes
 * @param {(Child | Child[])[]} children
 */
export function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(.../** @type {(Node | string)[]} */ (children.flat().filter((child) => child !== null && child !== undefined && child !== "")));
  return node;
}
