/* The ladder of one connection: client on the left, server on the right, time downwards, an arrow for each packet. Evenly,
   with what each packet is for beside it; or to scale, where arrows slope by the way that a packet still has or had. */

import { brief, count, el, exact, inMs, plural, svg } from "./format.js";

/** @typedef {import("./model.js").Lane} Lane */
/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./model.js").Row} Row */

/* Of the picture to scale, in pixels: its width, what is left and right of client and server, its least height per arrow. */
const PICTURE = 920;
const ASIDE = 150;
const HEAD = 26;
const LEAST_STEP = 7;
const LEAST_BAND = 0.25;
const LETTER_HEIGHT = 11;

/**
 * Everything that single packets of a lane tell.
 * @param {Model} model
 * @param {Lane} lane
 */
export const hasLadder = (model, lane) => model.size(lane.index, "rungs") > 0;

/**
 * @param {Row} rung
 * @returns {string} what stands under an arrow, as Wireshark would have it
 */
const numbers = (rung) => [
  rung.seq === null ? null : `seq ${count(rung.seq)}`, rung.ack === null ? null : `ack ${count(rung.ack)}`,
  rung.window_bytes === null ? null : `window ${count(rung.window_bytes)}`, plural(rung.bytes, "byte"), rung.flags && `[${rung.flags}]`,
].filter(Boolean).join(", ");

/**
 * Which phase an instant of a lane lies in.
 * @param {Lane} lane
 * @param {number} at
 */
function phaseAt({ phases }, at) {
  let [low, high] = [0, phases.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at < phases[middle].end) high = middle;
    else low = middle + 1;
  }
  return phases[low];
}

/**
 * The arrow of a packet, or the gap of a silence, as a row of a table.
 * @param {Model} model
 * @param {Lane} lane
 * @param {Row[]} rungs
 * @param {Map<number, Row>} silences by the frame after which they begin
 * @param {boolean} explained
 */
function evenly(model, lane, rungs, silences, explained) {
  const rows = rungs.flatMap((rung) => {
    const phase = phaseAt(lane, rung.seen_at);
    const strip = phase && el("td", { class: `strip k-${model.kinds[phase.kind].name}`, title: model.kinds[phase.kind].title });
    const row = el("tr", { "data-frame": rung.frame, class: rung.mark ? "odd" : null },
      el("td", { class: "n" }, inMs(rung.seen_at - lane.opened)), el("td", { class: "n" }, String(rung.frame)), strip,
      el("td", { class: `arrow ${rung.up ? "up" : "down"}` }, el("b", {}, rung.label || "…"), el("span", { class: "shaft" }), el("small", {}, numbers(rung))),
      explained ? el("td", {}, rung.says) : null);
    const silence = silences.get(rung.frame);
    return silence ? [row, el("tr", { class: "silence" }, el("td", { colspan: 3 }), el("td", { colspan: 2 }, silence.says))] : [row];
  });
  return el("table", { class: "rungs" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "n" }, "ms"), el("th", { scope: "col", class: "n" }, "Frame"), el("th", { scope: "col" }, ""),
      el("th", { scope: "col", class: "ends" }, el("span", {}, lane.client), el("span", {}, lane.server)), explained ? el("th", { scope: "col" }, "What it is for") : null)),
    el("tbody", {}, rows));
}

/**
 * The arrows that have room for words: what carries something comes before what only acknowledges.
 * @param {Row[]} rungs
 * @param {(rung: Row) => number} y
 */
function roomFor(rungs, y) {
  /** @type {Set<Row>} */
  const labelled = new Set();
  /** @type {number[]} */
  const taken = [];
  for (const wanted of [(/** @type {Row} */ rung) => rung.bytes > 0 || /[SFR]/.test(rung.flags), () => true]) {
    for (const rung of rungs) {
      if (labelled.has(rung) || !wanted(rung) || taken.some((at) => Math.abs(at - y(rung)) < LETTER_HEIGHT)) continue;
      labelled.add(rung);
      taken.push(y(rung));
    }
  }
  return labelled;
}

/**
 * The same, time downwards to scale. Where each end sent or got a packet is worked out: half of the round trip to it away
 * from where it was captured.
 * @param {Model} model
 * @param {Lane} lane
 * @param {Row[]} rungs
 * @param {Row[]} silences
 * @param {boolean} explained
 */
function scaled(model, lane, rungs, silences, explained) {
  const away = [(lane.rtt_client_ns || 0) / 2, (lane.rtt_server_ns || 0) / 2];
  const start = lane.opened - away[0];
  const span = Math.max(1, lane.opened + lane.duration + away[0] + away[1] - start);
  const height = Math.max(320, Math.min(6000, rungs.length * LEAST_STEP * 3));
  const y = (/** @type {number} */ at) => HEAD + ((at - start) / span) * height;
  const [left, right] = [ASIDE, PICTURE - ASIDE];
  const picture = svg("svg", { viewBox: `0 0 ${PICTURE} ${height + HEAD + 20}`, role: "img", class: "to-scale" });
  const add = (/** @type {string} */ tag, /** @type {Record<string, string | number>} */ attributes, /** @type {string | null} */ text = null, into = picture) => {
    const node = svg(tag, attributes);
    if (text !== null) node.textContent = text;
    into.append(node);
    return node;
  };
  // Of phases that are too short to be told apart here, one is drawn.
  let drawn = -Infinity;
  for (const phase of lane.phases) {
    if (y(phase.end) - drawn < LEAST_BAND) continue;
    drawn = y(phase.end);
    const band = add("rect", { x: 0, y: y(phase.start), width: 8, height: Math.max(0.5, y(phase.end) - y(phase.start)), class: "band" });
    band.setAttribute("style", `fill: var(--${model.kinds[phase.kind].name})`);
    add("title", {}, `${model.kinds[phase.kind].title} ${exact(phase.duration)}`, band);
  }
  for (const [x, name] of /** @type {[number, string][]} */ ([[left, lane.client], [right, lane.server]])) {
    add("line", { x1: x, x2: x, y1: HEAD - 6, y2: HEAD + height, class: "life" });
    add("text", { x, y: HEAD - 12, "text-anchor": "middle" }, name);
  }
  for (const silence of silences) {
    const [from, to] = [y(silence.start_at), y(silence.start_at + silence.took_ns)];
    if (to - from >= LETTER_HEIGHT * 1.6) add("text", { x: PICTURE / 2, y: (from + to) / 2 + 4, "text-anchor": "middle", class: "silence" }, silence.says.length > 84 ? `${silence.says.slice(0, 83)}…` : silence.says);
  }
  const labelled = roomFor(rungs, (rung) => y(rung.up ? rung.seen_at - away[0] : rung.seen_at - away[1]));
  for (const rung of rungs) {
    const [before, after] = rung.up ? [rung.seen_at - away[0], rung.seen_at + away[1]] : [rung.seen_at - away[1], rung.seen_at + away[0]];
    const [x1, x2] = rung.up ? [left, right] : [right, left];
    const arrow = add("g", { class: rung.mark ? "packet odd" : "packet", "data-frame": rung.frame });
    add("line", { x1, y1: y(before), x2, y2: y(after) }, null, arrow);
    const tip = Math.atan2(y(after) - y(before), x2 - x1);
    const [bx, by] = [x2 - 7 * Math.cos(tip), y(after) - 7 * Math.sin(tip)];
    add("path", { d: `M${x2} ${y(after)}L${bx - 3 * Math.sin(tip)} ${by + 3 * Math.cos(tip)}L${bx + 3 * Math.sin(tip)} ${by - 3 * Math.cos(tip)}Z` }, null, arrow);
    add("title", {}, `Frame ${rung.frame}, ${exact(rung.seen_at - lane.opened)}: ${rung.label}${explained ? `. ${rung.says}` : ""}`, arrow);
    if (!labelled.has(rung)) continue;
    const told = y(before);
    add("text", { x: rung.up ? left - 8 : right + 8, y: told + 4, "text-anchor": rung.up ? "end" : "start" }, rung.label.length > 22 ? `${rung.label.slice(0, 21)}…` : rung.label, arrow);
    add("text", { x: 12, y: told + 4, class: "time" }, `${inMs(rung.seen_at - lane.opened)} ms`, arrow);
  }
  picture.setAttribute("aria-label", `${plural(rungs.length, "packet")} between ${lane.client} and ${lane.server}, to scale`);
  return el("div", {},
    el("p", { class: "note" }, away[0] || away[1]
      ? `When an end sent or got a packet is worked out, half of the round trip from where it was captured: ${brief(away[0])} to the client, ${brief(away[1])} to the server.`
      : "How far the ends are from where this was captured is not known: arrows are level."), picture);
}

/**
 * What other programs would print of the same exchanges.
 * @param {Row[]} shown
 * @param {string[]} why
 */
function others(shown, why) {
  if (!shown.length) return [];
  const several = shown.some((clock) => clock.exchange !== shown[0].exchange);
  return [
    el("h4", {}, "What other programs would print"),
    el("table", { class: "clocks" },
      el("thead", {}, el("tr", {}, [...(several ? ["Request"] : []), "Program", "Figure", "Value", "What it is"].map((title) => el("th", { scope: "col", class: title === "Value" ? "n" : null }, title)))),
      el("tbody", {}, shown.map((clock, i) => el("tr", {},
        several ? el("td", {}, `#${clock.exchange}`) : null, el("td", {}, i && shown[i - 1].program === clock.program ? "" : clock.program),
        el("td", {}, el("code", {}, clock.name)), el("td", { class: "n" }, clock.took_ns === null ? "not known" : brief(clock.took_ns)), el("td", {}, clock.meaning))))),
    ...why.map((sentence) => el("p", { class: "note" }, sentence)),
  ];
}

/**
 * The fields of each handshake message, one below the other, folded.
 * @param {Row[]} fields
 */
function dissected(fields) {
  if (!fields.length) return [];
  /** @type {Row[][]} */
  const messages = [];
  for (const field of fields) {
    const last = messages[messages.length - 1];
    if (last && last[0].number === field.number) last.push(field);
    else messages.push([field]);
  }
  return [
    el("h4", {}, "Fields of the handshake messages"),
    ...messages.map((message) => el("details", {}, el("summary", {}, message[0].message ? `${message[0].message}, frame ${message[0].frame}` : message[0].value),
      el("table", { class: "fields" }, el("tbody", {}, message.map((field) => el("tr", {}, el("th", { scope: "row", style: `padding-left: ${8 + 14 * Math.min(field.depth, 8)}px` }, field.name), el("td", {}, field.value))))))),
  ];
}

/**
 * The section of the detail panel. Without explanations, it shows what passed and when, and the reader says why.
 * @param {Model} model
 * @param {Lane} lane
 * @param {{toScale: boolean, explained: boolean, onScale: (toScale: boolean) => void, onExplain: (explained: boolean) => void}} way
 */
export function ladderPanel(model, lane, way) {
  const rungs = model.rowsOf(lane.index, "rungs");
  if (model.viewpoint !== "capture" || model.madeFrom)
    return [el("p", { class: "note ladder-missing" }, "What each packet is for is told as captured, and to scale as both ends saw it: seen from the capture point, it stands here.")];
  if (!rungs.length)
    return [el("p", { class: "note ladder-missing" }, "This capture is too large for the page to hold each packet. What each packet of this connection is for: ", el("code", {}, `conchart explain CAPTURE ${lane.stream}`))];
  const { explained } = way;
  const silences = explained ? model.rowsOf(lane.index, "silences") : [];
  const buttons = /** @type {[string, boolean][]} */ ([["evenly", false], ["to scale", true]]).map(([words, toScale]) => {
    const button = el("button", { type: "button", "aria-pressed": String(toScale === way.toScale), "data-scale": String(toScale) }, words);
    button.addEventListener("click", () => way.onScale(toScale));
    return button;
  });
  const explain = el("button", { type: "button", "aria-pressed": String(explained), "data-explanations": "" }, "explanations");
  explain.addEventListener("click", () => way.onExplain(!explained));
  const facts = explained ? model.rowsOf(lane.index, "facts") : [];
  return [el("section", { class: "ladder", "aria-label": `Ladder of connection ${lane.stream}` },
    el("div", { class: "heading" }, el("h4", {}, "Packet by packet"), el("span", { class: "grow" }), explain, ...buttons),
    el("dl", {}, facts.map((fact) => el("div", {}, el("dt", {}, fact.name), el("dd", {}, fact.says)))),
    el("div", { class: "scrolled" }, way.toScale ? scaled(model, lane, rungs, silences, explained) : evenly(model, lane, rungs, new Map(silences.map((silence) => [silence.frame, silence])), explained)),
    ...(explained ? others(model.rowsOf(lane.index, "clocks"), model.clocksDiffer) : []), ...dissected(model.rowsOf(lane.index, "fields")))];
}
