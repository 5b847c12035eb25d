/* What the tooltip and the detail panel say about a connection, a phase, a packet. */

import { copyButton } from "./copy.js";
import { density } from "./detail.js";
import { brief, count, el, exact, factText } from "./format.js";

/** @typedef {import("./model.js").Lane} Lane */
/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./model.js").Row} Row */
/** @typedef {import("./format.js").Child} Child */
/** @typedef {import("./format.js").Fact} Fact */
/** @typedef {{lane?: Lane, stream: number, exchange?: Row}} LinkEnd */

/** @type {(text: string) => string} */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** @type {(fact: Fact, row: Row) => string} */
const labelled = (fact, row) => `${fact[0]} ${factText(fact, row)}`;

/**
 * Who was stalled, for how long and why, from which packet to which.
 * @param {Lane} lane
 * @param {Row} stall
 * @param {Model} model
 */
const stallTip = (lane, stall, { facts }) => [
  el("div", { class: "tip-title tip-lane" }, el("span", { class: `swatch stalled w-${stall.word}` }), `${stall.word} `, el("b", {}, exact(stall.duration)), el("em", {}, stall.name)),
  el("div", {}, factText(facts.stall, stall)),
  el("div", {}, labelled(facts.stall_frames, stall), " of ", el("code", {}, lane.filter)),
];

/**
 * "held 57.1 ms, limited 8.05 ms", the most first.
 * @param {Lane} lane
 * @param {Model} model
 */
function stallSums(lane, { facts }) {
  const sums = new Map();
  for (const { word, duration } of lane.stalls) sums.set(word, (sums.get(word) || 0) + duration);
  return [...sums].sort((a, b) => b[1] - a[1]).map(([word, duration]) => factText(facts.amount, { word, duration })).join(", ");
}

/**
 * What is linked with a phase: by its exchange, by the whole connection, or because a connection was opened for it.
 * @param {Lane} lane
 * @param {Row} phase
 * @returns {Row[]}
 */
export function linksOf(lane, phase) {
  const exchange = lane.exchanges.find((x) => x.number === phase.exchange);
  const opening = (/** @type {Row} */ link) => link.back.lane?.index === lane.index && phase.end <= link.inBack[1] && phase.start >= link.inBack[0];
  const opened = phase.exchange === null ? lane.exchanges.slice(0, 1).flatMap((x) => x.links.filter(opening)) : [];
  return [...(exchange ? exchange.links : []), ...opened, ...lane.links];
}

/**
 * @param {LinkEnd} end
 * @param {Model} model
 */
const linkEnd = ({ stream, lane, exchange }, { facts }) => (lane ? `#${stream} ${lane.server}${exchange ? ` ${factText(facts.request, { ...exchange, origin: "" })}` : ""}` : `#${stream} (not drawn)`);

/**
 * What caused this, or what it caused, and what its wait was spent on there.
 * @param {Lane} lane
 * @param {Row} link
 * @param {Model} model
 * @param {boolean} split
 */
function linkTip(lane, link, model, split) {
  const { facts, linked, steps } = model;
  const caused = link.front.lane?.index === lane.index;
  const words = linked[link.handed ? 1 : 0][caused ? 0 : 1];
  const spent = split && caused ? steps.flatMap((step, i) => (link.times[i] ? [el("span", { class: "step" }, el("span", { class: `swatch s-${step.name}` }), factText(facts.amount, { word: step.word, duration: link.times[i] })), " "] : [])) : [];
  return [
    el("div", {}, `${capital(words)} `, el("b", {}, linkEnd(caused ? link.back : link.front, model)), ` (${factText(facts.link, link)})`),
    spent.length ? el("div", {}, `of ${brief(waitOf(link))} wait: `, spent) : null,
  ];
}

/**
 * All of the wait that a link explains: of HTTP/2, requests wait side by side, and the bar shows one of them at a time.
 * @param {Row} link
 */
const waitOf = (link) => link.times.reduce((/** @type {number} */ sum, /** @type {number} */ ns) => sum + ns, 0);

const MOST_LISTED = 6;

/**
 * The links of a phase; of many, the first.
 * @param {Lane} lane
 * @param {Row[]} links
 * @param {Model} model
 * @param {boolean} split
 */
function linksTip(lane, links, model, split) {
  return [
    ...links.slice(0, MOST_LISTED).flatMap((link) => linkTip(lane, link, model, split)),
    links.length > MOST_LISTED ? el("div", {}, `and ${count(links.length - MOST_LISTED)} more`) : null,
  ];
}

/**
 * @param {Lane} lane
 * @param {Row} phase
 * @param {Row | undefined} stall
 * @param {Model} model
 */
export function phaseTip(lane, phase, stall, model) {
  const { facts } = model;
  const kind = model.kinds[phase.kind];
  /** @type {(HTMLElement | null)[]} */
  const lines = [
    el("div", { class: "tip-title" }, el("span", { class: `swatch k-${kind.name}` }), `${kind.title} `, el("b", {}, exact(phase.duration)),
      phase.inferred ? el("em", {}, "inferred") : null),
    el("div", {}, factText(facts.phase, phase)),
    el("div", {}, frameSpan(phase), " of ", el("code", {}, lane.filter)),
  ];
  if (kind.name === "tls") {
    const handshake = lane.handshakes.findLast((h) => h.hello === null || h.hello <= phase.start) || lane.handshakes[0];
    if (handshake) lines.push(el("div", {}, factText(facts.handshake, handshake)));
  }
  const exchange = phase.exchange === null ? null : lane.exchanges.find((x) => x.number === phase.exchange);
  if (exchange) {
    const isWait = kind.name === "wait" && !exchange.pieces;
    const isLast = phase.end === lane.phases[lane.phases.length - 1].end;
    lines.push(el("div", { class: "line" }, factText(facts.request, exchange)));
    const texts = [
      factText(facts.exchange, { ...exchange, service_ns: isWait ? exchange.service_ns : null, unfinished: isLast && exchange.unfinished }),
      factText(facts.messages, exchange),
    ];
    lines.push(...texts.map((text) => (text ? el("div", {}, text) : null)));
    lines.push(...lane.notes.filter((note) => note.number === exchange.number).slice(0, MOST_LISTED).map((note) => el("div", { class: "line" }, note.says)));
  }
  lines.push(...linksTip(lane, linksOf(lane, phase), model, kind.name === "wait"));
  return [...lines.filter((line) => line !== null), ...(stall ? stallTip(lane, stall, model) : []), ...laneTip(lane, false, model)];
}

/** @param {Row} phase */
const frameSpan = (phase) => (phase.start_frame === phase.end_frame ? `Frame ${phase.start_frame}` : `Frames ${phase.start_frame} to ${phase.end_frame}`);

/**
 * @param {Lane} lane
 * @param {boolean} alone
 * @param {Model} model
 */
export function laneTip(lane, alone, model) {
  const { facts } = model;
  const [handshake] = lane.handshakes;
  return [
    el("div", { class: alone ? "tip-title" : "tip-lane" }, el("b", {}, `#${lane.stream} `), `${factText(facts.client, lane)} → ${factText(facts.server, lane)}`, lane.name ? ` ${lane.name}` : ""),
    el("div", {}, factText(facts.brief, lane)),
    lane.stalls.length ? el("div", {}, `Stalled: ${stallSums(lane, model)}`) : null,
    alone && handshake ? el("div", {}, factText(facts.handshake, handshake)) : null,
    ...(alone ? linksTip(lane, lane.links, model, false) : []),
    alone ? el("div", {}, labelled(facts.frames, lane), " of ", el("code", {}, lane.filter)) : null,
  ].filter((line) => line !== null);
}

/**
 * @param {Lane} lane
 * @param {Row} packet
 * @param {Model} model
 */
export function packetTip(lane, packet, model) {
  return [
    el("div", { class: "tip-title" }, `Frame ${packet.frame} `, el("b", {}, `${packet.up ? "client → server" : "server → client"}`),
      packet.mark ? el("em", {}, packet.mark.replace("_", " ")) : null),
    el("div", {}, factText(model.facts.packet, packet)),
    ...laneTip(lane, false, model),
  ];
}

/**
 * Of a folded group: how many connections are in which phase at an instant.
 * @param {{row: import("./tree.js").Row, at: number | null, pixel: number}} hit
 * @param {Model} model
 * @param {import("./chart.js").View} view
 */
export function groupTip({ row, at, pixel }, model, view) {
  if (!row.strip || at === null) return null;
  const { kinds } = model.drawnKinds;
  const counts = density(model.drawn, row.lanes, { x0: at - pixel, x1: at + pixel }, 1, kinds.length, view.shift);
  const lines = kinds.flatMap((/** @type {Row} */ kind, /** @type {number} */ i) => (counts[i][0] ? [el("div", {}, el("span", { class: `swatch k-${kind.name}` }), `${kind.title} `, el("b", {}, counts[i][0].toPrecision(3)))] : []));
  return {
    links: [],
    content: [
      el("div", { class: "tip-title" }, `${exact(Math.round(at))} after the start: connections in each phase`), ...lines,
      el("div", {}, lines.length ? "Click to unfold it." : "No connection is open. Click to unfold it."),
    ],
  };
}

/**
 * "caused #5, #7": the lanes that an exchange is linked with.
 * @param {Lane} lane
 * @param {Row | null | undefined} exchange
 * @param {Model} model
 */
function linkWords(lane, exchange, { linked }) {
  /** @type {Row[]} */
  const links = exchange ? exchange.links : [];
  const ends = [
    links.filter((link) => link.front.lane?.index === lane.index).map((link) => link.back),
    links.filter((link) => link.back.lane?.index === lane.index).map((link) => link.front),
  ];
  return linked[0].flatMap((words, i) => (ends[i].length ? [`${words} ${ends[i].slice(0, MOST_LISTED).map(({ stream }) => `#${stream}`).join(", ")}`] : [])).join(", ");
}

const MAX_LISTED = 200;

/**
 * Everything about one connection, as text.
 * @param {Lane} lane
 * @param {Model} model
 * @param {Record<"zoom" | "table" | "larger" | "close", () => void>} actions
 */
export function detailPanel(lane, model, actions) {
  const { kinds, facts } = model;
  const request = (/** @type {number} */ number) => factText(facts.request, lane.exchanges.find((x) => x.number === number) || { method: "request", origin: "", target: String(number) });
  const row = { ...lane, stalled: stallSums(lane, model) };
  const listed = [
    ...model.panel.map((fact) => [fact[0], factText(fact, row)]),
    ...lane.notes.filter((note) => note.number === null).slice(0, MOST_LISTED).map((note) => [note.title, note.says]),
    ...lane.handshakes.map((h) => [facts.handshake[0], factText(facts.handshake, h)]),
    ...lane.notes.filter((note) => note.number !== null).slice(0, MAX_LISTED).map((note) => [note.title, `${request(note.number)}: ${note.says}`]),
    ...lane.exchanges.filter((x) => factText(facts.messages, x)).slice(0, MOST_LISTED).map((x) => [facts.messages[0], `${request(x.number)}: ${factText(facts.messages, x)}`]),
  ].filter(([, text]) => text);
  const phases = lane.phases.slice(0, MAX_LISTED).map((phase) => {
    const exchange = phase.exchange === null ? null : lane.exchanges.find((x) => x.number === phase.exchange);
    const kind = kinds[phase.kind];
    return el("tr", {},
      el("th", { scope: "row" }, el("span", { class: `swatch k-${kind.name}` }), kind.title, phase.inferred ? el("em", {}, "inferred") : null),
      el("td", { class: "n" }, exact(phase.start)), el("td", { class: "n" }, exact(phase.duration)),
      el("td", { class: "n" }, phase.start_frame === phase.end_frame ? `${phase.start_frame}` : `${phase.start_frame} – ${phase.end_frame}`),
      el("td", {}, [exchange ? factText(facts.request, exchange) : null, kind.name === "wait" ? linkWords(lane, exchange, model) : null].filter(Boolean).join(", ")));
  });
  const stalls = lane.stalls.slice(0, MAX_LISTED).map((stall) => el("tr", {},
    el("th", { scope: "row" }, el("span", { class: `swatch stalled w-${stall.word}` }), `${stall.word} `, el("em", {}, stall.name)),
    el("td", { class: "n" }, exact(stall.start)), el("td", { class: "n" }, exact(stall.duration)), el("td", { class: "n" }, factText(facts.stall_frames, stall)),
    el("td", {}, factText(facts.stall, stall))));
  const button = (/** @type {string} */ text, /** @type {() => void} */ action) => {
    const node = el("button", { type: "button", class: text.toLowerCase().replace(/ /g, "-") }, text);
    node.addEventListener("click", action);
    return node;
  };
  return [
    el("div", { class: "heading" }, el("h3", {}, `Connection #${lane.stream}`), el("span", {}, el("code", {}, lane.filter), " ", copyButton(`Copy ${lane.filter}`, () => lane.filter, "copy")), el("span", { class: "grow" }),
      button("Zoom to it", actions.zoom), button("Show in table", actions.table), button("Larger", actions.larger), button("Close", actions.close)),
    el("div", { class: "columns" },
      el("dl", {}, listed.map(([label, text]) => el("div", {}, el("dt", {}, label), el("dd", {}, text)))),
      el("div", { class: "wide" },
        ...listing(lane, "phases", ["Phase", "Starts", "Takes", "Frames", "Request"], phases),
        ...listing(lane, "stalls", ["Stall", "Starts", "Takes", "Frames", "Why"], stalls))),
  ];
}

/**
 * A table of a lane's phases or stalls, and where the rest of them is; nothing where there are none.
 * @param {Lane} lane
 * @param {"phases" | "stalls"} name
 * @param {string[]} titles
 * @param {HTMLElement[]} rows
 * @returns {Child[]}
 */
function listing(lane, name, titles, rows) {
  if (!rows.length) return [];
  const more = lane[name].length - rows.length;
  return [
    el("table", {}, el("thead", {}, el("tr", {}, titles.map((title, i) => el("th", { scope: "col", class: i > 0 && i < 4 ? "n" : null }, title)))), el("tbody", {}, rows)),
    more ? el("p", { class: "note" }, `and ${count(more)} more ${name}: conchart query CAPTURE "SELECT * FROM ${name} WHERE stream = ${lane.stream}"`) : null,
  ];
}
