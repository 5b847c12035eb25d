/* The ladder of one connection: client on the left, server on the right, time downwards, an arrow for each packet. Evenly,
   with what each packet is for beside it; or to scale, where arrows slope by the way that a packet still has or had. */

import { brief, clip, count, el, exact, inMs, plural, svg } from "./format.js";

/** @typedef {import("./model.js").Lane} Lane */
/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./model.js").Row} Row */

/* Of the picture to scale, in pixels: its width, what is left and right of client and server, its least height per arrow. */
const PICTURE = 920;
const NARROWEST = 320;
const ASIDE = 150;
const HEAD = 26;
const LEAST_STEP = 7;
const LEAST_BAND = 0.25;
const LETTER_HEIGHT = 11;

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
  const names = placesOf(model, lane).map(({ name }) => name);
  const arrows = names.length ? placeArrows(model, lane, rungs, names) : [];
  const between = (/** @type {Arrow | undefined} */ arrow) => arrow && el("small", {}, `${arrow.way.filter(([column]) => Number.isInteger(column)).map(([column, at]) => `${names[column]} ${inMs(at - lane.opened)}`).join(" → ")}${arrow.lost ? " → ✕" : ""}`);
  const rows = rungs.flatMap((rung, i) => {
    const phase = phaseAt(lane, rung.seen_at);
    const strip = phase && el("td", { class: `strip k-${model.kinds[phase.kind].name}`, title: model.kinds[phase.kind].title });
    const row = el("tr", { "data-frame": rung.frame, class: rung.mark || arrows[i]?.lost ? "odd" : null },
      el("td", { class: "n" }, inMs(rung.seen_at - lane.opened)), el("td", { class: "n" }, String(rung.frame)), strip,
      el("td", { class: `arrow ${rung.up ? "up" : "down"}` }, el("b", {}, rung.label || "…"), el("span", { class: "shaft" }), el("small", {}, numbers(rung)), between(arrows[i])),
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
 * @param {Arrow[]} arrows
 * @param {(arrow: Arrow) => number} y
 */
function roomFor(arrows, y) {
  /** @type {Set<Arrow>} */
  const labelled = new Set();
  /** @type {number[]} */
  const taken = [];
  for (const wanted of [(/** @type {Arrow} */ { rung }) => rung.bytes > 0 || /[SFR]/.test(rung.flags), () => true]) {
    for (const arrow of arrows) {
      if (labelled.has(arrow) || !wanted(arrow) || taken.some((at) => Math.abs(at - y(arrow)) < LETTER_HEIGHT)) continue;
      labelled.add(arrow);
      taken.push(y(arrow));
    }
  }
  return labelled;
}

/**
 * Where a packet was when, by the columns of a picture; of one that was lost, the last column is between two places.
 * @typedef {{rung: Row, way: [number, number][], up: boolean, lost: boolean}} Arrow
 * @typedef {{name: string, doubt: number | null}} Column
 */

/**
 * The places that saw a connection, from the client on; none where one place saw it.
 * @param {Model} model
 * @param {Lane} lane
 * @returns {Column[]}
 */
export const placesOf = (model, lane) => model.rowsOf(lane.index, "columns").map(({ place, doubt_ns: doubt }) => ({ name: place, doubt }));

/**
 * The packets of a connection as arrows between places.
 * @param {Model} model
 * @param {Lane} lane
 * @param {Row[]} rungs
 * @param {string[]} names of the columns
 * @returns {Arrow[]}
 */
export function placeArrows(model, lane, rungs, names) {
  /** @type {Map<number, Row[]>} */
  const ways = new Map();
  for (const seen of model.rowsOf(lane.index, "ways")) ways.set(seen.frame, [...(ways.get(seen.frame) || []), seen]);
  return rungs.map((rung) => {
    const seen = ways.get(rung.frame) || [];
    const way = seen.map((one) => /** @type {[number, number]} */ ([names.indexOf(one.place), one.seen_at]));
    const last = seen[seen.length - 1];
    const lost = Boolean(last && last.lost_to !== null);
    if (lost) way.push([(names.indexOf(last.place) + names.indexOf(last.lost_to)) / 2, last.seen_at]);
    return { rung, way, up: rung.up, lost };
  });
}

/**
 * Arrows of one connection between its two ends. Where each end sent or got a packet is worked out: half of the round trip
 * to it away from where it was captured.
 * @param {Row[]} rungs
 * @param {[number, number]} away
 * @returns {Arrow[]}
 */
const endArrows = (rungs, away) => rungs.map((rung) => ({
  rung, up: rung.up, lost: false,
  way: rung.up ? [[0, rung.seen_at - away[0]], [1, rung.seen_at + away[1]]] : [[1, rung.seen_at - away[1]], [0, rung.seen_at + away[0]]],
}));

/**
 * Time downwards to scale, as wide as there is room: text keeps its size.
 * @param {Column[]} columns
 * @param {Arrow[]} arrows
 * @param {{start: number, end: number, zero: number, room: number, bands: [number, number, Row][], silences: Row[], explained: boolean}} about
 */
export function drawArrows(columns, arrows, { start, end, zero, room, bands, silences, explained }) {
  const width = Math.max(NARROWEST, Math.min(PICTURE, room || PICTURE));
  const aside = Math.min(ASIDE, width / 4);
  const letters = Math.floor((aside - 14) / 6);
  const span = Math.max(1, end - start);
  const height = Math.max(320, Math.min(6000, arrows.length * LEAST_STEP * 3));
  const y = (/** @type {number} */ at) => HEAD + ((at - start) / span) * height;
  const x = (/** @type {number} */ column) => aside + (column * (width - 2 * aside)) / Math.max(1, columns.length - 1);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height + HEAD + 20}`, role: "img", class: "to-scale" });
  const add = (/** @type {string} */ tag, /** @type {Record<string, string | number>} */ attributes, /** @type {string | null} */ text = null, into = picture) => {
    const node = svg(tag, attributes);
    if (text !== null) node.textContent = text;
    into.append(node);
    return node;
  };
  // Of phases that are too short to be told apart here, one is drawn.
  let drawn = -Infinity;
  for (const [from, to, kind] of bands) {
    if (y(to) - drawn < LEAST_BAND) continue;
    drawn = y(to);
    const band = add("rect", { x: 0, y: y(from), width: 8, height: Math.max(0.5, y(to) - y(from)), class: "band" });
    band.setAttribute("style", `fill: var(--${kind.name})`);
    add("title", {}, `${kind.title} ${exact(to - from)}`, band);
  }
  const fits = Math.floor((width - 2 * aside) / Math.max(1, columns.length - 1) / 7);
  columns.forEach(({ name, doubt }, i) => {
    add("line", { x1: x(i), x2: x(i), y1: HEAD - 6, y2: HEAD + height, class: "life" });
    const title = add("text", { x: x(i), y: HEAD - 12, "text-anchor": "middle", class: "place" }, clip(name, Math.max(8, fits)));
    if (doubt) add("title", {}, `${name}: its clock may be wrong by ${brief(doubt)} against that of ${columns[i - 1].name}`, title);
  });
  for (const silence of silences) {
    const [from, to] = [y(silence.start_at), y(silence.start_at + silence.took_ns)];
    if (to - from >= LETTER_HEIGHT * 1.6) add("text", { x: width / 2, y: (from + to) / 2 + 4, "text-anchor": "middle", class: "silence" }, clip(silence.says, Math.floor(width / 11)));
  }
  const labelled = roomFor(arrows.filter(({ way }) => way.length), ({ way }) => y(way[0][1]));
  for (const arrow of arrows) {
    const { rung, way, up, lost } = arrow;
    if (!way.length) continue;
    const group = add("g", { class: `packet ${up ? "by-client" : "by-server"}${rung.mark ? " odd" : ""}${lost ? " lost" : ""}`, "data-frame": rung.frame });
    for (let i = 1; i < way.length; i += 1) add("line", { x1: x(way[i - 1][0]), y1: y(way[i - 1][1]), x2: x(way[i][0]), y2: y(way[i][1]) }, null, group);
    const [last, before] = [way[way.length - 1], way[way.length - 2] || way[way.length - 1]];
    const [x2, y2] = [x(last[0]), y(last[1])];
    if (lost) add("text", { x: x2, y: y2 + 4, "text-anchor": "middle", class: "cross" }, "✕", group);
    else {
      const tip = way.length > 1 ? Math.atan2(y2 - y(before[1]), x2 - x(before[0])) : up ? 0 : Math.PI;
      const [bx, by] = [x2 - 7 * Math.cos(tip), y2 - 7 * Math.sin(tip)];
      add("path", { d: `M${x2} ${y2}L${bx - 3 * Math.sin(tip)} ${by + 3 * Math.cos(tip)}L${bx + 3 * Math.sin(tip)} ${by - 3 * Math.cos(tip)}Z` }, null, group);
    }
    add("title", {}, `Frame ${rung.frame}, ${exact(rung.seen_at - zero)}: ${rung.label}${explained && rung.says ? `. ${rung.says}` : ""}`, group);
    if (!labelled.has(arrow)) continue;
    const top = y(way[0][1]);
    const [timed, time] = [width === PICTURE, `${inMs(rung.seen_at - zero)} ms`];
    add("text", { x: up ? x(way[0][0]) - 8 : x(way[0][0]) + 8, y: top + 4, "text-anchor": up ? "end" : "start", class: "word" }, clip(rung.label, timed && !way[0][0] ? letters - time.length : letters), group);
    if (timed) add("text", { x: 12, y: top + 4, class: "time" }, time, group);
  }
  picture.setAttribute("aria-label", `${plural(arrows.length, "packet")} between ${columns.map(({ name }) => name).join(", ")}, to scale`);
  return picture;
}

/**
 * The same, time downwards to scale: between the places that saw the packets, or between both ends.
 * @param {Model} model
 * @param {Lane} lane
 * @param {Row[]} rungs
 * @param {Row[]} silences
 * @param {boolean} explained
 * @param {number} room
 */
function scaled(model, lane, rungs, silences, explained, room) {
  const places = placesOf(model, lane);
  /** @type {[number, number]} */
  const away = [(lane.rtt_client_ns || 0) / 2, (lane.rtt_server_ns || 0) / 2];
  const arrows = places.length ? placeArrows(model, lane, rungs, places.map(({ name }) => name)) : endArrows(rungs, away);
  const instants = arrows.flatMap(({ way }) => way.map(([, at]) => at));
  const [start, end] = places.length
    ? [Math.min(lane.opened, ...instants), Math.max(lane.opened + lane.duration, ...instants)]
    : [lane.opened - away[0], lane.opened + lane.duration + away[1]];
  return el("div", {},
    el("p", { class: "note" }, places.length
      ? `When each place saw a packet, by one clock: ${places.map(({ name, doubt }, i) => (i ? `${name} ± ${doubt === null ? "unknown" : brief(doubt)}` : name)).join(", ")}. A slope is time on the path.`
      : away[0] || away[1]
        ? `When an end sent or got a packet is worked out, half of the round trip from where it was captured: ${brief(away[0])} to the client, ${brief(away[1])} to the server.`
        : "How far the ends are from where this was captured is not known: arrows are level."),
    drawArrows(places.length ? places : [{ name: lane.client, doubt: null }, { name: lane.server, doubt: null }], arrows, {
      start, end: end + (places.length ? 0 : away[0]), zero: lane.opened, room, silences, explained,
      bands: lane.phases.map((phase) => [phase.start, phase.end, model.kinds[phase.kind]]),
    }));
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
 * What access logs say of its requests, each line as it stands there.
 * @param {Row[]} lines
 */
function logged(lines) {
  if (!lines.length) return [];
  return [
    el("h4", {}, "What the access log says of its requests"),
    el("dl", { class: "logged" }, lines.map((line) => el("div", {}, el("dt", {}, `Request ${line.exchange}: ${line.place}`), el("dd", {}, el("code", {}, line.line)), el("dd", {}, line.says)))),
  ];
}

/**
 * The section of the detail panel. Without explanations, it shows what passed and when, and the reader says why.
 * @param {Model} model
 * @param {Lane} lane
 * @param {{toScale: boolean, explained: boolean, room: number, onScale: (toScale: boolean) => void, onExplain: (explained: boolean) => void}} way
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
    el("div", { class: "scrolled" }, way.toScale ? scaled(model, lane, rungs, silences, explained, way.room) : evenly(model, lane, rungs, new Map(silences.map((silence) => [silence.frame, silence])), explained)),
    ...(explained ? others(model.rowsOf(lane.index, "clocks"), model.clocksDiffer) : []), ...logged(model.rowsOf(lane.index, "logged")), ...dissected(model.rowsOf(lane.index, "fields")))];
}
