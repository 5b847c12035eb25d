/* What opens at "?": every key, and the language of the search box. */

import { el } from "./format.js";
import { FIELDS } from "./language.js";

/** Keys that work everywhere, on the lanes, and in the tables. @type {[string, [string, string][]][]} */
const KEYS = [
  ["Everywhere", [
    ["/", "search"], ["n p", "show the next finding, the one before"], ["t", "to the table"], ["l", "to the ladder of the chosen connection: it, packet by packet"], ["c", "copy the Wireshark filter of the chosen connection"],
    ["v", "times as the client, the capture point, the server saw them"],
    ["Esc", "close help, then the details, then show all connections again"], ["?", "this help"],
  ]],
  ["On the lanes", [
    ["↑ ↓", "choose the lane above, below"], ["Enter", "zoom to the chosen connection"], ["+ −", "zoom in, out"], ["← →", "pan"], ["0", "the whole capture"],
    ["Ctrl+wheel", "zoom at the pointer"], ["drag", "zoom to what is dragged over"], ["Shift+drag", "pan"], ["double click", "the whole capture"],
    ["click", "on a lane: its details; on a group: fold or unfold it"],
  ]],
  ["In the tables", [
    ["↑ ↓ PgUp PgDn Home End", "from row to row"], ["Enter", "choose the connection and zoom to it; of a finding, show its connections"], ["← →", "on a tab: the next table"],
  ]],
];

/** What can be written besides fields. @type {[string, string][]} */
const LANGUAGE = [
  ["10.0.0.9 login", "words: a part of an address, name, host, path, status, state or finding, or a port. All must hold"],
  ["\"two words\"", "a phrase"],
  ["-word", "not: of a request, no request of the connection is so"],
  ["#7", "a connection by its number here; tcp.stream eq 7 by Wireshark's"],
  ["failed", "connections that were refused or not answered, or whose TLS handshake failed"],
  ["path:/login", "a field contains a text; path=/login: it is just that; path!=/login: it is not"],
  ["path:/login status:5xx", "of the same request: conditions on requests, or on handshakes, hold together on one"],
  ["wait > 20ms", "a field compared: = != > >= < <=; times in ns, us, ms, s, min; bytes in B, kB, MB, GB, KiB, MiB"],
  ["phase:tls > 20ms", "time in a phase, over all of the connection; the name alone will do where no field has it"],
];

/**
 * @param {[string, string][]} rows
 * @param {"code" | "kbd"} tag
 */
const explained = (rows, tag) => el("table", {}, el("tbody", {}, rows.map(([what, words]) => el("tr", {}, el("th", { scope: "row" }, el(tag, {}, what)), el("td", {}, words)))));

/** What the box says of itself while nothing is in it. */
export const SEARCH_HINT = "Words, \"a phrase\", -not, #7, status:503, path:/login, wait > 20ms, phase:tls > 20ms, ip:10.0.0.0/8, state:refused, finding:…, failed. All of it: ?";

/* Under which a browser remembers that somebody wants no keys of a single letter. */
const REMEMBERED = "conchart-single-keys";

/** Whether keys of a single letter or sign work wherever the focus is: who dictates to the computer switches them off (WCAG 2.1.4). */
export class SingleKeys {
  constructor() {
    this.box = /** @type {HTMLInputElement} */ (el("input", { type: "checkbox", id: "single-keys" }));
    this.box.checked = this.remembered !== "off";
    this.box.addEventListener("change", () => { this.remembered = this.box.checked ? "on" : "off"; });
  }

  get on() {
    return this.box.checked;
  }

  /* Browsers may keep their store from pages on disk. */
  get remembered() {
    try {
      return localStorage.getItem(REMEMBERED) || "";
    } catch {
      return "";
    }
  }

  set remembered(value) {
    try {
      localStorage.setItem(REMEMBERED, value);
    } catch {
      // It holds as long as the page is open.
    }
  }
}

/**
 * Fill the dialog.
 * @param {HTMLDialogElement} dialog
 * @param {string[]} phases
 * @param {SingleKeys} single
 */
export function fillHelp(dialog, phases, single) {
  const close = el("button", { type: "button" }, "Close");
  close.addEventListener("click", () => dialog.close());
  dialog.replaceChildren(
    el("div", { class: "heading" }, el("h2", { id: "help-title" }, "Keys and search"), el("span", { class: "grow" }), close),
    el("label", {}, single.box, " Keys of a single letter or sign work everywhere on the page"),
    ...KEYS.flatMap(([title, keys]) => [el("h3", {}, title), explained(keys, "kbd")]),
    el("h3", {}, "Search"),
    explained(LANGUAGE, "code"),
    el("h3", {}, "Fields"),
    explained([...FIELDS.map(({ name, words }) => /** @type {[string, string]} */ ([name, words])), ["phase:…", phases.join(", ")]], "code"),
  );
}
