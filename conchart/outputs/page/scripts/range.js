/* A stretch of time, dragged over the lanes or typed, and where it went: "what happened in these 40 ms?" */

import { attribute } from "./detail.js";
import { clip, count, el, exact, grouped, nanoseconds, plural, share } from "./format.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {{x0: number, x1: number}} Stretch from the first instant until before the last, in ns */
/** @typedef {(lane: number) => number} Shift what is subtracted from a lane's times */
/** @typedef {{from: ArrayLike<number>, at: ArrayLike<number>, valid: ArrayLike<number> | null}} Events instants, by lane, or none */
/** @typedef {import("./model.js").Kind} Kind */
/** @typedef {{kind: Kind, ns: number}} Part */
/** @typedef {"zoom" | "select"} Drag what dragging does, in Plotly's words */

/* Servers that are told one by one: those waited for the longest. */
const MOST_SERVERS = 6;

/**
 * Offsets of what there is one of for each lane.
 * @param {number} lanes
 */
export function oneEach(lanes) {
  const offsets = new Uint32Array(lanes + 1);
  for (let lane = 1; lane <= lanes; lane += 1) offsets[lane] = lane;
  return offsets;
}

/**
 * When something happened on each lane.
 * @param {Model} model
 * @param {string} table
 * @param {string} column an instant
 * @returns {Events}
 */
export function eventsOf(model, table, column) {
  const { values, valid } = model.tables[table].column(column);
  return { from: model.offsets[table], at: values, valid };
}

/**
 * How often something happened in each of some equal parts of time.
 * @param {Events} events
 * @param {ArrayLike<number>} lanes
 * @param {{x0: number, length: number, parts: number}} buckets
 * @param {Shift} shift
 */
export function countPer({ from, at, valid }, lanes, { x0, length, parts }, shift) {
  const counts = new Uint32Array(parts);
  for (let n = 0; n < lanes.length; n += 1) {
    const zero = x0 + shift(lanes[n]);
    const last = from[lanes[n] + 1];
    for (let i = from[lanes[n]]; i < last; i += 1) {
      const part = Math.floor((at[i] - zero) / length);
      if (part >= 0 && part < parts && (!valid || valid[i])) counts[part] += 1;
    }
  }
  return counts;
}

/**
 * How long connections were stalled in a stretch, by kind, the longest first.
 * @param {Model} model
 * @param {ArrayLike<number>} lanes
 * @param {Stretch} stretch
 * @param {Shift} shift
 */
export function stallsIn(model, lanes, { x0, x1 }, shift) {
  const { from, start, end } = model.stalls;
  const kinds = model.tables.stalls.values("kind");
  /** @type {Map<number, {kind: number, ns: number, connections: number, last: number}>} */
  const sums = new Map();
  for (let n = 0; n < lanes.length; n += 1) {
    const lane = lanes[n];
    const by = shift(lane);
    for (let i = from[lane]; i < from[lane + 1]; i += 1) {
      const ns = Math.min(end[i] - by, x1) - Math.max(start[i] - by, x0);
      if (ns <= 0) continue;
      let sum = sums.get(kinds[i]);
      if (!sum) sums.set(kinds[i], sum = { kind: kinds[i], ns: 0, connections: 0, last: -1 });
      sum.ns += ns;
      sum.connections += Number(sum.last !== lane);
      sum.last = lane;
    }
  }
  return [...sums.values()].sort((a, b) => b.ns - a.ns);
}

/**
 * Where a stretch of some connections went: by phase as it is drawn, all together and by server, and what began and was open in it.
 * @param {Model} model
 * @param {ArrayLike<number>} lanes
 * @param {Stretch} stretch
 * @param {Shift} shift
 */
export function account(model, lanes, stretch, shift) {
  /** @type {Map<number, number[]>} */
  const groups = new Map();
  let [open, opened, closed] = [0, 0, 0];
  for (let n = 0; n < lanes.length; n += 1) {
    const lane = lanes[n];
    const [from, to] = [model.opened[lane] - shift(lane), model.closed[lane] - shift(lane)];
    const opens = from >= stretch.x0 && from < stretch.x1;
    if (!opens && (from >= stretch.x1 || to <= stretch.x0)) continue;
    open += 1;
    opened += Number(opens);
    closed += Number(to > stretch.x0 && to <= stretch.x1);
    const members = groups.get(model.group[lane]);
    if (members) members.push(lane);
    else groups.set(model.group[lane], [lane]);
  }
  const { kinds } = model.drawnKinds;
  const whole = { x0: stretch.x0, length: stretch.x1 - stretch.x0, parts: 1 };
  const waitedOf = (/** @type {Float64Array} */ sums) => sums.reduce((sum, ns, kind) => (kinds[kind].waited ? sum + ns : sum), 0);
  const total = new Float64Array(kinds.length);
  const servers = [...groups].map(([group, members]) => {
    const { sums } = attribute(model.drawn, members, stretch, kinds.length, shift);
    sums.forEach((ns, kind) => { total[kind] += ns; });
    return { group, sums, waited: waitedOf(sums) };
  });
  servers.sort((a, b) => b.waited - a.waited || a.group - b.group);
  return {
    sums: total, waited: waitedOf(total), servers, open, opened, closed,
    handshakes: countPer(eventsOf(model, "handshakes", "hello"), lanes, whole, shift)[0],
    requests: countPer(eventsOf(model, "exchanges", "request"), lanes, whole, shift)[0],
    stalls: stallsIn(model, lanes, stretch, shift),
  };
}

/**
 * Beyond 2^53 a number has no nanoseconds left.
 * @param {number} ns
 */
const summed = (ns) => (Number.isSafeInteger(ns) ? exact(ns) : `${grouped(Math.round(ns / 1e9))}\u00a0s`);

/** @param {Kind} kind */
const lookOf = (kind) => kind.look || `k-${kind.name}`;

/**
 * What users waited for as a bar, as long as its share of the longest; then in words, then what went by besides.
 * @param {Kind[]} kinds
 * @param {string | Node[]} title
 * @param {{sums: Float64Array, waited: number}} told
 * @param {number} longest
 */
function accountRow(kinds, title, { sums, waited }, longest) {
  const parts = kinds.map((kind, i) => ({ kind, ns: sums[i] })).filter(({ ns }) => ns);
  const chip = (/** @type {Part} */ { kind, ns }) => el("li", {}, el("span", { class: `swatch ${lookOf(kind)}` }), `${kind.title} `, el("b", { "data-kind": kind.name }, summed(ns)), kind.waited ? ` ${share(ns, waited)}` : "");
  const slice = (/** @type {Part} */ { kind, ns }) => el("span", { class: lookOf(kind), style: `flex-grow:${ns / waited}` });
  const [waits, besides] = [true, false].map((waitedFor) => parts.filter(({ kind }) => kind.waited === waitedFor));
  const width = ((100 * waited) / (longest || 1)).toFixed(3);
  return el("tr", {},
    el("th", { scope: "row" }, title),
    el("td", { class: "bars" },
      waits.length ? [el("div", { class: "bar", style: `--width:${width}%`, "aria-hidden": "true" }, waits.map(slice)), el("ul", { class: "chips" }, waits.map(chip))] : null,
      besides.length ? el("ul", { class: "chips besides" }, el("li", {}, waits.length ? "and" : "only"), besides.map(chip)) : null),
    el("td", { class: "n", "data-title": "Waited" }, el("b", {}, waited ? summed(waited) : "–")));
}

/**
 * A part of the page that its template has: of the kind that it gives it.
 * @param {string} id
 * @returns {any}
 */
export const named = (id) => document.getElementById(id);

/** What is dragged, and the panel below the lanes. */
export class Range {
  /**
   * @param {Model} model
   * @param {import("./lanes.js").Lanes} lanes
   */
  constructor(model, lanes) {
    this.model = model;
    this.lanes = lanes;
    /** @type {HTMLElement} */
    this.panel = named("range");
    /** @type {HTMLElement} */
    this.result = named("range-result");
    /** @type {HTMLInputElement[]} */
    this.fields = [named("range-from"), named("range-to")];
    /** @type {Record<Drag, HTMLInputElement>} */
    this.modes = { zoom: named("drag-zoom"), select: named("drag-measure") };
    this.listen();
  }

  /**
   * What dragging does from now on.
   * @param {Drag} mode
   */
  drag(mode) {
    const { view } = this.lanes;
    this.modes[mode].checked = true;
    view.drag = mode;
    this.panel.hidden = mode === "zoom" && !view.range;
    if (mode === "select" && !view.range) this.result.replaceChildren(el("p", { class: "note" }, "Drag over the lanes, or type two instants."));
    this.lanes.redrawSoon();
  }

  /**
   * Take a stretch, as whole nanoseconds of the capture.
   * @param {number[]} instants two, in any order
   */
  set(instants) {
    const { model, lanes } = this;
    const [x0, x1] = instants.map((at) => Math.min(Math.max(model.begun, Math.round(at)), model.span)).sort((a, b) => a - b);
    if (x1 === x0) return;
    lanes.view.range = { x0, x1 };
    lanes.redrawSoon();
    this.show();
  }

  clear() {
    const { view } = this.lanes;
    view.range = null;
    for (const field of this.fields) field.value = "";
    this.drag(view.drag || "zoom");
  }

  /** Tell of the connections shown. */
  show() {
    const { model, lanes } = this;
    const { range: stretch, shift } = lanes.view;
    this.shift = shift;
    if (!stretch) return;
    this.panel.hidden = false;
    [this.fields[0].value, this.fields[1].value] = [exact(stretch.x0), exact(stretch.x1)];
    const { sums, waited, servers, open, opened, closed, handshakes, requests, stalls } = account(model, lanes.filtered, stretch, shift);
    const name = (/** @type {{endpoint: string, title: string}} */ { endpoint: address, title }) => [...(title ? [el("span", { class: "name" }, clip(title, 60))] : []), el("code", {}, address)];
    const { kinds } = model.drawnKinds;
    const first = servers.slice(0, MOST_SERVERS);
    this.result.replaceChildren(
      el("p", {}, "Length ", el("b", { id: "range-length" }, exact(stretch.x1 - stretch.x0)), `: ${plural(open, "connection")} open, ${count(opened)} opened and ${count(closed)} closed in it; ${plural(handshakes, "handshake")} and ${plural(requests, "request")} began.`),
      el("div", { class: "wide" }, el("table", { class: "shares" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Server"), el("th", { scope: "col", class: "bars" }, "What users waited for in it"), el("th", { scope: "col", class: "n" }, "Waited"))),
        el("tbody", {},
          servers.length === 1 ? null : accountRow(kinds, "All shown", { sums, waited }, waited),
          first.map((server) => accountRow(kinds, name(model.groups[server.group]), server, first[0].waited))))),
      servers.length > first.length ? el("p", { class: "note" }, `${plural(servers.length - first.length, "more server")} not listed: users waited longer for those above.`) : "",
      stalls.length ? el("ul", { class: "stalls" }, stalls.map(({ kind, ns, connections }) => el("li", {}, el("b", {}, model.stallKinds[kind].word), `: ${summed(ns)} on ${plural(connections, "connection")}, ${model.stallKinds[kind].meaning}`))) : "",
    );
  }

  /** Times may be told from another zero. */
  follow() {
    if (this.lanes.view.shift !== this.shift) this.show();
  }

  listen() {
    const { lanes, fields } = this;
    for (const mode of /** @type {Drag[]} */ (["zoom", "select"])) this.modes[mode].addEventListener("change", () => this.drag(mode));
    lanes.box.addEventListener("keydown", (event) => {
      if (event.key === "m" && !event.ctrlKey && !event.metaKey && !event.altKey) this.drag(lanes.view.drag === "select" ? "zoom" : "select");
    });
    lanes.plot.on("plotly_selected", (selected) => selected?.range && this.set(selected.range.x));
    named("range-form").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      const instants = fields.map((field) => nanoseconds(field.value));
      fields.forEach((field, i) => field.setCustomValidity(instants[i] === null ? "A time with its unit, as 1.25 s or 300 ms" : ""));
      if (fields.every((field) => field.reportValidity())) this.set(/** @type {number[]} */ (instants));
    });
    for (const field of fields) field.addEventListener("input", () => field.setCustomValidity(""));
    named("range-zoom").addEventListener("click", () => lanes.view.range && lanes.zoomTo(lanes.view.range.x0, lanes.view.range.x1));
    named("range-clear").addEventListener("click", () => this.clear());
  }
}
