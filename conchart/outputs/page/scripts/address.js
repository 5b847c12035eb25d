/* What is shown, as the part of the page's address behind the #: whoever opens the link sees the same. What a link says may
   be hostile or out of date: each part that makes no sense is left out, and the others hold. */

import { VIEWPOINTS } from "./viewpoint.js";

/**
 * @typedef {{range: [number, number] | null, search: string, server: string, app: string, finding: number | null, chosen: number | null, unfolded: [string, boolean][], axis: string, seenFrom: string, toScale: boolean, packed: boolean, costly: boolean, height: number | null, tab: string, sort: {column: string, down: boolean} | null}} View
 */

/** What is shown where nothing else is said. @type {View} */
export const PLAIN_VIEW = { range: null, search: "", server: "", app: "", finding: null, chosen: null, unfolded: [], axis: "span", seenFrom: "capture", toScale: false, packed: true, costly: false, height: null, tab: "", sort: null };

/* How times are told, as the lanes know it. */
const AXES = ["span", "utc", "local", "own"];
/* A longer text, or more groups, is not what this page wrote. */
const MAX_WORDS = 2000;
const MAX_GROUPS = 1000;
const GROUP = /^s\d{1,9}(?:\/[0-9a-fA-F:.%]{1,64})?$/;

/**
 * @param {View} view
 * @returns {string} without the #; empty where everything is as it is from the start
 */
export function writeView(view) {
  const parameters = new URLSearchParams();
  const groups = (/** @type {boolean} */ open) => view.unfolded.filter((one) => one[1] === open).slice(0, MAX_GROUPS).map(([key]) => key).join(",");
  /** @type {[string, string | number | null][]} */
  const parts = [
    ["x", view.range && view.range.map(Math.round).join("_")],
    ["q", view.search], ["server", view.server], ["app", view.app], ["finding", view.finding], ["stream", view.chosen],
    ["open", groups(true)], ["folded", groups(false)],
    ["axis", view.axis === PLAIN_VIEW.axis ? null : view.axis], ["seen", view.seenFrom === PLAIN_VIEW.seenFrom ? null : view.seenFrom], ["ladder", view.toScale ? "scale" : null], ["lanes", view.packed ? null : "own"], ["order", view.costly ? "cost" : null], ["height", view.height],
    ["tab", view.tab], ["sort", view.sort && `${view.sort.column}${view.sort.down ? ".down" : ""}`],
  ];
  for (const [name, value] of parts) if (value !== null && value !== "") parameters.set(name, String(value));
  return parameters.toString();
}

/**
 * A whole number from nought; null where it is none.
 * @param {string | null} text
 */
const whole = (text) => (text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null);

/**
 * @param {string} hash with its # or without
 * @returns {View}
 */
export function readView(hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (/** @type {string} */ name) => (parameters.get(name) || "").slice(0, MAX_WORDS);
  const range = /^(-?\d{1,16})_(-?\d{1,16})$/.exec(text("x"));
  const sort = /^([\w-]{1,40})(\.down)?$/.exec(text("sort"));
  const groups = (/** @type {string} */ name) => (parameters.get(name) || "").slice(0, 80 * MAX_GROUPS).split(",").filter((key) => GROUP.test(key)).slice(0, MAX_GROUPS);
  return {
    range: range && Number(range[1]) < Number(range[2]) ? [Number(range[1]), Number(range[2])] : null,
    search: text("q"), server: text("server"), app: text("app"), finding: whole(parameters.get("finding")), chosen: whole(parameters.get("stream")),
    unfolded: [...groups("open").map((key) => /** @type {[string, boolean]} */ ([key, true])), ...groups("folded").map((key) => /** @type {[string, boolean]} */ ([key, false]))],
    axis: AXES.includes(text("axis")) ? text("axis") : PLAIN_VIEW.axis, seenFrom: VIEWPOINTS.includes(text("seen")) ? text("seen") : PLAIN_VIEW.seenFrom, toScale: parameters.get("ladder") === "scale", packed: parameters.get("lanes") !== "own", costly: parameters.get("order") === "cost",
    height: [8, 16, 24].find((height) => height === whole(parameters.get("height"))) ?? null,
    tab: /^[a-z]{1,20}$/.test(text("tab")) ? text("tab") : "",
    sort: sort ? { column: sort[1], down: Boolean(sort[2]) } : null,
  };
}

/* Whoever zooms makes many views: the last is written when it has stood for so long, in ms. */
const SETTLED = 250;

/** Keeps the page's address up with what is shown; the history has no entry of each view. */
export class Address {
  /**
   * @param {() => View} shown
   * @param {(view: View) => void} restore told when somebody opens another link to this page
   */
  constructor(shown, restore) {
    this.shown = shown;
    this.pending = 0;
    // A link to a part of the page, as that of a finding, tells no view.
    window.addEventListener("hashchange", () => document.getElementById(location.hash.slice(1)) || restore(readView(location.hash)));
  }

  /* The link, now. */
  link() {
    const text = writeView(this.shown());
    return location.href.replace(/#.*$/, "") + (text ? `#${text}` : "");
  }

  changed() {
    clearTimeout(this.pending);
    this.pending = window.setTimeout(() => history.replaceState(null, "", this.link()), SETTLED);
  }
}
