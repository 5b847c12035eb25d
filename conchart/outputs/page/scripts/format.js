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

const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];

/**
 * As `format_bytes` of labels/units.py writes it.
 * @param {number | null} n
 */
export const bytes = (n) => {
  if (n === null) return "?";
  const power = BYTE_UNITS.findIndex((_, i) => threeDigits(n, 1000 ** i) !== "1000");
  return `${threeDigits(n, 1000 ** power)}\u00a0${BYTE_UNITS[power]}`;
};

/**
 * @param {number} n
 * @param {string} what
 */
export const plural = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

/* What places of a fact may have behind their colon, but for nouns; see labels/filling.py. */
const PLACE = /\{(\w+)(?::([^}]*))?\}/g;
/** @type {Record<string, (value: any) => string>} */
const WRITERS = { ns: brief, exact, size: bytes, number: String, ratio: (value) => value.toFixed(2), flag: () => "" };
const DURATIONS = ["ns", "exact"];

/** @type {(name: string, unit: string | undefined) => string | undefined} */
const unitOf = (name, unit) => (name.endsWith("_ns") ? "ns" : unit);

/**
 * @param {any} value
 * @param {string | undefined} unit
 * @returns {string}
 */
function written(value, unit) {
  if (unit) return WRITERS[unit] ? WRITERS[unit](value) : plural(value, unit);
  return typeof value === "number" ? count(value) : value;
}

/**
 * A text with places, filled from a row; empty where it does not apply to it.
 * @param {string} text
 * @param {Record<string, any>} row
 */
function filled(text, row) {
  const places = [...text.matchAll(PLACE)].map(([, name, unit]) => ({ value: row[name] ?? null, unit: unitOf(name, unit) || "" }));
  if (places.some(({ value, unit }) => value === null || (unit === "flag" && !value))) return "";
  if (!places.some(({ value, unit }) => value || DURATIONS.includes(unit))) return "";
  return text.replace(PLACE, (_, name, unit) => written(row[name], unitOf(name, unit)));
}

/**
 * A fact of a row, declared in report/facts.py: the texts that apply to it; empty where none does.
 * @typedef {[label: string, texts: string[], between: string]} Fact
 * @param {Fact} fact
 * @param {Record<string, any>} row
 */
export const factText = ([, texts, between], row) => texts.map((text) => filled(text, row)).filter(Boolean).join(between);

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
