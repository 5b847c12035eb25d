/* What the tooltip and the detail panel say about a connection, a phase, a packet. */

import { copyButton } from "./copy.js";
import { density } from "./detail.js";
import { brief, bytes, count, el, exact, plural } from "./format.js";
import { handshakeKind } from "./model.js";

/** @typedef {import("./model.js").Lane} Lane */
/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./model.js").Row} Row */
/** @typedef {import("./format.js").Child} Child */
/** @typedef {{lane?: Lane, stream: number, exchange?: Row}} LinkEnd */

/** @param {Row} h */
const tlsFacts = (h) => [
  [h.version, h.cipher].filter(Boolean).join(" "),
  h.named_group,
  h.outcome === "complete" ? `${handshakeKind(h)} handshake` : `handshake ${h.outcome}`,
  h.sni ? `SNI ${h.sni}` : null,
  h.alpn ? `ALPN ${h.alpn}` : null,
  h.round_trips === null ? null : plural(h.round_trips, "round trip"),
  h.hello_retry ? "HelloRetryRequest" : null,
  h.client_auth ? "client certificate" : null,
  h.early_data ? "early data" : null,
  h.false_start ? "False Start" : null,
  h.certificates ? `${plural(h.certificates, "certificate")} of ${bytes(h.certificate_bytes)}` : null,
  h.alert ? `alert: ${h.alert}` : null,
].filter(Boolean).join(", ");

/** @param {Row} x */
export const requestLine = (x) => {
  const asked = x.method ? `${x.method} ${x.host && !(x.target || "").includes("://") ? x.host : ""}${x.target || ""}` : `${x.protocol || "unknown"} turn ${x.number}`;
  return x.answer === null ? asked : `${asked} → ${x.answer}`;
};

/**
 * How many messages of gRPC or WebSocket an exchange has, and the longest pause between two of the server's.
 * @param {Row} x
 */
function saidFacts(x) {
  if (!x.said_client && !x.said_server && !x.controls) return null;
  return [
    ...["client", "server"].map((side) => (x[`said_${side}`] ? `${plural(x[`said_${side}`], "message")} of the ${side} (${bytes(x[`said_bytes_${side}`])})` : null)),
    x.controls ? plural(x.controls, "control frame") : null,
    x.gap_ns === null ? null : `longest pause between two of the server's ${brief(x.gap_ns)} (frames ${x.gap_start_frame} → ${x.gap_end_frame})`,
  ].filter(Boolean).join(", ");
}

const UNDER_WAY = "unfinished at the last packet";

/**
 * Who was stalled, for how long and why, from which packet to which.
 * @param {Lane} lane
 * @param {Row} stall
 */
const stallTip = (lane, stall) => [
  el("div", { class: "tip-title tip-lane" }, el("span", { class: `swatch stalled w-${stall.kind.word}` }), `${stall.kind.word} `, el("b", {}, exact(stall.duration)), el("em", {}, stall.kind.name), stall.unfinished ? el("em", {}, UNDER_WAY) : ""),
  el("div", {}, `${stall.kind.meaning}${stall.ack_delay_ns ? `; ${brief(stall.ack_delay_ns)} of it is the peer's delay` : ""}`),
  el("div", {}, `The ${stall.side}'s byte did not come: ${stall.kind.doing} doing, confidence ${stall.confidence.toFixed(2)}`),
  el("div", {}, `Frames ${stallFrames(stall)} of `, el("code", {}, lane.filter)),
];

/** @param {Row} stall */
const stallFrames = (stall) => [stall.start_frame, stall.released_frame, stall.end_frame].filter((frame) => frame !== null).join(" → ");

/**
 * "held 57.1 ms, limited 8.05 ms", the most first.
 * @param {Lane} lane
 */
function stallSums(lane) {
  const sums = new Map();
  for (const { kind, duration } of lane.stalls) sums.set(kind.word, (sums.get(kind.word) || 0) + duration);
  return [...sums].sort((a, b) => b[1] - a[1]).map(([word, ns]) => `${word} ${brief(ns)}`).join(", ");
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

/** @param {LinkEnd} end */
const linkEnd = ({ stream, lane, exchange }) => (lane ? `#${stream} ${lane.server}${exchange ? ` ${requestLine({ ...exchange, host: null })}` : ""}` : `#${stream} (not drawn)`);

/**
 * What caused this, or what it caused, and what its wait was spent on there.
 * @param {Lane} lane
 * @param {Row} link
 * @param {Row[]} steps
 * @param {boolean} split
 */
function linkTip(lane, link, steps, split) {
  const caused = link.front.lane?.index === lane.index;
  const words = link.handed ? (caused ? "Handed on as" : "Handed on from") : caused ? "Caused" : "Caused by";
  const spent = split && caused ? steps.flatMap((step, i) => (link.times[i] ? [el("span", { class: "step" }, el("span", { class: `swatch s-${step.name}` }), `${step.word} ${brief(link.times[i])}`), " "] : [])) : [];
  return [
    el("div", {}, `${words} `, el("b", {}, linkEnd(caused ? link.back : link.front)), ` (told by ${link.method}, ${link.confidence.toFixed(2)})`),
    spent.length ? el("div", {}, `of ${brief(waitOf(link))} wait: `, spent) : null,
  ];
}

/**
 * All of the wait that a link explains: of HTTP/2, requests wait side by side, and the bar shows one of them at a time.
 * @param {Row} link
 */
const waitOf = (link) => link.times.reduce((/** @type {number} */ sum, /** @type {number} */ ns) => sum + ns, 0);

const MAX_TOLD = 6;

/**
 * The links of a phase; of many, the first.
 * @param {Lane} lane
 * @param {Row[]} links
 * @param {Row[]} steps
 * @param {boolean} split
 */
function linksTip(lane, links, steps, split) {
  return [
    ...links.slice(0, MAX_TOLD).flatMap((link) => linkTip(lane, link, steps, split)),
    links.length > MAX_TOLD ? el("div", {}, `and ${count(links.length - MAX_TOLD)} more`) : null,
  ];
}

/**
 * @param {Lane} lane
 * @param {Row} phase
 * @param {Row | undefined} stall
 * @param {Model} model
 */
export function phaseTip(lane, phase, stall, { kinds, steps }) {
  const kind = kinds[phase.kind];
  /** @type {(HTMLElement | null)[]} */
  const lines = [
    el("div", { class: "tip-title" }, el("span", { class: `swatch k-${kind.name}` }), `${kind.title} `, el("b", {}, exact(phase.duration)),
      phase.inferred ? el("em", {}, "inferred") : null),
    el("div", {}, `${exact(phase.start)} to ${exact(phase.end)} after the start`),
    el("div", {}, frameSpan(phase), " of ", el("code", {}, lane.filter)),
  ];
  if (kind.name === "tls") {
    const handshake = lane.handshakes.findLast((h) => h.hello === null || h.hello <= phase.start) || lane.handshakes[0];
    if (handshake) lines.push(el("div", {}, tlsFacts(handshake)));
  }
  const exchange = phase.exchange === null ? null : lane.exchanges.find((x) => x.number === phase.exchange);
  if (exchange) {
    lines.push(el("div", { class: "line" }, requestLine(exchange)));
    lines.push(el("div", {}, `request ${bytes(exchange.request_bytes)}, response ${bytes(exchange.response_bytes)}`,
      kind.name === "wait" && exchange.service_ns !== null && !exchange.pieces ? `, ${brief(exchange.service_ns)} of the wait is the server's own` : ""));
    const said = saidFacts(exchange);
    if (said) lines.push(el("div", {}, said));
    lines.push(...lane.notes.filter((note) => note.number === exchange.number).slice(0, MAX_TOLD).map((note) => el("div", { class: "line" }, note.says)));
    if (exchange.unfinished && phase.end === lane.phases[lane.phases.length - 1].end) lines.push(el("div", {}, `The request is ${UNDER_WAY}`));
    if (exchange.inferred && exchange.confidence !== null) lines.push(el("div", {}, `read from the direction of bytes, confidence ${exchange.confidence.toFixed(2)}`));
  }
  lines.push(...linksTip(lane, linksOf(lane, phase), steps, kind.name === "wait"));
  return [...lines.filter((line) => line !== null), ...(stall ? stallTip(lane, stall) : []), ...laneTip(lane, false)];
}

/** @param {Row} phase */
const frameSpan = (phase) => (phase.start_frame === phase.end_frame ? `Frame ${phase.start_frame}` : `Frames ${phase.start_frame} to ${phase.end_frame}`);

/**
 * An end of a connection, and who owns its socket, where that is known.
 * @param {Lane} lane
 * @param {"client" | "server"} side
 */
const owned = (lane, side) => (lane[`${side}_who`] ? `${lane[side]}, ${lane[`${side}_who`]}` : lane[side]);

/**
 * @param {Lane} lane
 * @param {boolean} alone
 */
export function laneTip(lane, alone) {
  const handshake = lane.handshakes[0];
  return [
    el("div", { class: alone ? "tip-title" : "tip-lane" }, el("b", {}, `#${lane.stream} `), `${owned(lane, "client")} → ${owned(lane, "server")}`, lane.name ? ` ${lane.name}` : ""),
    el("div", {}, `${[lane.app, lane.state].filter(Boolean).join(", ")}, open for ${brief(lane.duration)}, ${bytes(lane.bytes_client)} up, ${bytes(lane.bytes_server)} down`,
      lane.retransmits ? `, ${plural(lane.retransmits, "retransmission")}` : ""),
    lane.stalls.length ? el("div", {}, `Stalled: ${stallSums(lane)}`) : null,
    alone && handshake ? el("div", {}, tlsFacts(handshake)) : null,
    ...(alone ? linksTip(lane, lane.links, [], false) : []),
    alone ? el("div", {}, `frames ${lane.first_frame} to ${lane.last_frame} of `, el("code", {}, lane.filter)) : null,
  ].filter((line) => line !== null);
}

/**
 * @param {Lane} lane
 * @param {Row} packet
 */
export function packetTip(lane, packet) {
  return [
    el("div", { class: "tip-title" }, `Frame ${packet.frame} `, el("b", {}, `${packet.up ? "client → server" : "server → client"}`),
      packet.mark ? el("em", {}, packet.mark.replace("_", " ")) : null),
    el("div", {}, `${exact(packet.at)} after the start`),
    el("div", {}, `flags ${packet.flags || "none"}, ${plural(packet.bytes, "byte")} of payload`),
    ...laneTip(lane, false),
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
 */
function linkWords(lane, exchange) {
  /** @type {Row[]} */
  const links = exchange ? exchange.links : [];
  const told = (/** @type {string} */ words, /** @type {LinkEnd[]} */ ends) => (ends.length ? `${words} ${ends.slice(0, MAX_TOLD).map(({ stream }) => `#${stream}`).join(", ")}` : null);
  return [
    told("caused", links.filter((link) => link.front.lane?.index === lane.index).map((link) => link.back)),
    told("caused by", links.filter((link) => link.back.lane?.index === lane.index).map((link) => link.front)),
  ].filter(Boolean).join(", ");
}

const MAX_LISTED = 200;

/**
 * The request that a note is about.
 * @param {Lane} lane
 * @param {Row} note
 */
function requestOf(lane, note) {
  const exchange = lane.exchanges.find((x) => x.number === note.number);
  return exchange ? requestLine(exchange) : `request ${note.number}`;
}

/**
 * Everything about one connection, as text.
 * @param {Lane} lane
 * @param {Row[]} kinds
 * @param {Record<"zoom" | "table" | "larger" | "close", () => void>} actions
 */
export function detailPanel(lane, kinds, actions) {
  const facts = [
    ["Client", owned(lane, "client")], ["Server", owned(lane, "server")], ["Name", lane.name], ["Protocol", [lane.app, lane.transport === "udp" ? "over UDP" : null].filter(Boolean).join(" ")], ["State", lane.state],
    ["Opened", `${exact(lane.opened)} after the start`], ["Open for", exact(lane.duration)],
    ["Packets", `${count(lane.packets_client)} up, ${count(lane.packets_server)} down`],
    ["Bytes", `${count(lane.bytes_client)} up, ${count(lane.bytes_server)} down`],
    ["Retransmitted", lane.retransmits ? `${lane.retransmits_client} up, ${lane.retransmits_server} down, ${lane.syn_retransmits} SYN` : null],
    ["Out of order", lane.out_of_order_client + lane.out_of_order_server || null],
    ["Zero windows", lane.zero_windows_client + lane.zero_windows_server || null],
    ["Missing bytes", lane.missing_client + lane.missing_server ? `${count(lane.missing_client)} up, ${count(lane.missing_server)} down` : null],
    ["Round trip", [lane.rtt_client_ns === null ? null : `${brief(lane.rtt_client_ns)} to the client`, lane.rtt_server_ns === null ? null : `${brief(lane.rtt_server_ns)} to the server`].filter(Boolean).join(", ")],
    ["Stalled", stallSums(lane)],
    ["Ended by", [lane.fin_by && `FIN of the ${lane.fin_by}`, lane.rst_by && `RST of the ${lane.rst_by}`].filter(Boolean).join(", ")],
    ...lane.notes.filter((note) => note.number === null).slice(0, MAX_TOLD).map((note) => [note.title, note.says]),
    ...lane.handshakes.map((h) => ["TLS", tlsFacts(h)]),
    ...lane.notes.filter((note) => note.number !== null).slice(0, MAX_LISTED).map((note) => [note.title, `${requestOf(lane, note)}: ${note.says}`]),
    ...lane.exchanges.map((x) => ["Messages", saidFacts(x), requestLine(x)]).filter(([, said]) => said).slice(0, MAX_TOLD).map(([name, said, asked]) => [name, `${asked}: ${said}`]),
  ].filter(([, value]) => value !== null && value !== undefined && value !== "");
  const phases = lane.phases.slice(0, MAX_LISTED).map((phase) => {
    const exchange = phase.exchange === null ? null : lane.exchanges.find((x) => x.number === phase.exchange);
    const kind = kinds[phase.kind];
    return el("tr", {},
      el("th", { scope: "row" }, el("span", { class: `swatch k-${kind.name}` }), kind.title, phase.inferred ? el("em", {}, "inferred") : null),
      el("td", { class: "n" }, exact(phase.start)), el("td", { class: "n" }, exact(phase.duration)),
      el("td", { class: "n" }, phase.start_frame === phase.end_frame ? `${phase.start_frame}` : `${phase.start_frame} – ${phase.end_frame}`),
      el("td", {}, [exchange ? requestLine(exchange) : null, kind.name === "wait" ? linkWords(lane, exchange) : null].filter(Boolean).join(", ")));
  });
  const stalls = lane.stalls.slice(0, MAX_LISTED).map((stall) => el("tr", {},
    el("th", { scope: "row" }, el("span", { class: `swatch stalled w-${stall.kind.word}` }), `${stall.kind.word} `, el("em", {}, stall.kind.name)),
    el("td", { class: "n" }, exact(stall.start)), el("td", { class: "n" }, exact(stall.duration)), el("td", { class: "n" }, stallFrames(stall)),
    el("td", {}, `${stall.side}: ${stall.kind.meaning}`)));
  const button = (/** @type {string} */ text, /** @type {() => void} */ action) => {
    const node = el("button", { type: "button", class: text.toLowerCase().replace(/ /g, "-") }, text);
    node.addEventListener("click", action);
    return node;
  };
  return [
    el("div", { class: "heading" }, el("h3", {}, `Connection #${lane.stream}`), el("span", {}, el("code", {}, lane.filter), " ", copyButton(`Copy ${lane.filter}`, () => lane.filter, "copy")), el("span", { class: "grow" }),
      button("Zoom to it", actions.zoom), button("Show in table", actions.table), button("Larger", actions.larger), button("Close", actions.close)),
    el("div", { class: "columns" },
      el("dl", {}, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value))))),
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
