/* The tables below the lanes: connections, requests, queries, handshakes and findings; their columns, and how they are sorted. */

import { bytes, count, inMs } from "./format.js";
import { endpoint } from "./model.js";
import { added, stalledTimes } from "./search.js";

/** @typedef {import("./model.js").Model} Model */
/**
 * A column of a table: `keys` are numbers of all rows that sort as the column does (NaN where nothing is known).
 * @typedef {{id: string, title: string, help: string, numeric: boolean, clipped: boolean, swatch: string, keys: () => ArrayLike<number>, show: (row: number) => string}} Shown
 * @typedef {{id: string, title: string, rows: number, columns: Shown[], lane: ((row: number) => number | null) | null, first: string}} Listing
 */

const IN_ORDER = new Intl.Collator("en", { numeric: true });

/**
 * Where each text stands in their order; NaN of those without one.
 * @param {ArrayLike<string | null>} texts
 */
export function ranks(texts) {
  const order = [...new Set(Array.from(texts))].filter((text) => text).sort((a, b) => IN_ORDER.compare(String(a), String(b)));
  const rank = new Map(order.map((text, i) => [text, i]));
  return Float64Array.from(texts, (text) => rank.get(text) ?? NaN);
}

/**
 * Rows in the order of their keys; those of which nothing is known come last, either way. Rows with the same key stay in the
 * order in which they came.
 * @param {Iterable<number>} rows
 * @param {ArrayLike<number>} keys
 * @param {boolean} down
 */
export function sortRows(rows, keys, down) {
  /** @type {number[]} */
  const ranked = [];
  /** @type {number[]} */
  const unknown = [];
  for (const row of rows) (Number.isNaN(keys[row]) ? unknown : ranked).push(row);
  const order = Uint32Array.from(ranked).sort(down ? (a, b) => keys[b] - keys[a] : (a, b) => keys[a] - keys[b]);
  const all = new Uint32Array(ranked.length + unknown.length);
  all.set(order);
  all.set(unknown, order.length);
  return all;
}

/**
 * The columns that tables are made of.
 * @param {Model} model
 */
function columnsOf({ tables }) {
  /** @type {(id: string, title: string, help: string, keys: () => ArrayLike<number>, show: (row: number) => string) => Shown} */
  const number = (id, title, help, keys, show) => ({ id, title, help, keys, show, numeric: true, clipped: false, swatch: "" });
  /** @type {(id: string, title: string, help: string, keys: () => ArrayLike<number>, show: (row: number) => string, clipped?: boolean) => Shown} */
  const text = (id, title, help, keys, show, clipped = false) => ({ id, title, help, keys, show, numeric: false, clipped, swatch: "" });
  /** @type {(table: string, name: string) => () => ArrayLike<number>} */
  const keysOf = (table, name) => () => {
    const { values, valid, texts } = tables[table].column(name);
    const rank = texts && ranks(texts);
    return Float64Array.from(values, (value, row) => (valid && !valid[row] ? NaN : rank ? rank[value] : value));
  };
  return {
    number,
    text,
    /** @type {(table: string, id: string, name: string, title: string, help: string, show: (value: any) => string) => Shown} */
    numberIn: (table, id, name, title, help, show) => number(id, title, help, keysOf(table, name), (row) => {
      const value = tables[table].column(name).get(row);
      return value === null ? "" : show(value);
    }),
    /** @type {(table: string, id: string, name: string, title: string, help: string, clipped?: boolean) => Shown} */
    textIn: (table, id, name, title, help, clipped = false) => text(id, title, help, keysOf(table, name), (row) => tables[table].column(name).get(row) || "", clipped),
  };
}

/**
 * Whether something is known in a column.
 * @param {Model} model
 * @param {string} table
 * @param {string} name
 */
function isUsed(model, table, name) {
  const { values, valid, texts } = model.tables[table].column(name);
  return texts ? texts.length > 0 : (valid || values).some((value) => value !== 0);
}

/** @type {(ns: number) => string} */
const msOrNothing = (ns) => (ns ? inMs(ns) : "");

/**
 * Connection, client and server, of tables whose rows belong to connections.
 * @param {Model} model
 * @param {ArrayLike<number> | null} owner lane of each row; null where rows are lanes
 * @returns {Shown[]}
 */
function ends(model, owner) {
  const { number, text } = columnsOf(model);
  const lane = (/** @type {number} */ row) => (owner ? owner[row] : row);
  const spread = (/** @type {ArrayLike<number>} */ keys) => (owner ? Float64Array.from(owner, (one) => keys[one]) : keys);
  const end = (/** @type {"client" | "server"} */ side) => () => {
    const { values, texts } = model.tables.lanes.column(`${side}_ip`);
    const rank = ranks(texts || []);
    const ports = model.tables.lanes.values(`${side}_port`);
    return spread(Float64Array.from(values, (code, i) => rank[code] * 65536 + ports[i]));
  };
  return [
    number("stream", "#", "number of the connection in this file", () => spread(model.streams), (row) => String(model.streams[lane(row)])),
    text("client", "Client", "who opened the connection", end("client"), (row) => model.endpoint(lane(row), "client"), true),
    text("server", "Server", "who accepted it", end("server"), (row) => model.endpoint(lane(row), "server"), true),
  ];
}

/**
 * What the handshakes of a lane were.
 * @param {Model} model
 * @param {number} lane
 */
function handshakeWords(model, lane) {
  const [from, to] = [model.offsets.handshakes[lane], model.offsets.handshakes[lane + 1]];
  const result = model.tables.handshakes.column("result");
  const words = new Set();
  for (let row = from; row < to; row += 1) words.add(result.get(row));
  return [...words].join(", ");
}

/**
 * @param {Model} model
 * @returns {Listing}
 */
export function connectionsTable(model) {
  const { number, text, numberIn, textIn } = columnsOf(model);
  const { lanes } = model.tables;
  const lanesOf = (/** @type {string[]} */ ...names) => () => added(names.map((name) => lanes.values(name)));
  const sum = (/** @type {number} */ lane, /** @type {string[]} */ ...names) => names.reduce((all, name) => all + lanes.values(name)[lane], 0);
  const resent = ["retransmits_client", "retransmits_server", "syn_retransmits"];
  const stalls = () => stalledTimes(model);
  const columns = [
    ...ends(model, null),
    ...(isUsed(model, "lanes", "name") ? [textIn("lanes", "name", "name", "Name", "SNI, or the Host of the first request", true)] : []),
    textIn("lanes", "app", "app", "Protocol", ""),
    numberIn("lanes", "opened", "opened", "Opened", "ms since the start of the capture", inMs),
    numberIn("lanes", "waited", "waited_ns", "Waited", "from the first SYN or a request to the last byte of its response, ms", inMs),
    numberIn("lanes", "total", "duration", "Total", "from its first to its last packet, ms", inMs),
    ...model.kinds.flatMap((/** @type {Record<string, any>} */ kind, /** @type {number} */ i) => (model.costs[i].some((ns) => ns > 0)
      ? [{ ...number(kind.name, kind.name, `${kind.title}, ms`, () => model.costs[i], (lane) => msOrNothing(model.costs[i][lane])), swatch: kind.name }] : [])),
    ...(model.tables.stalls.length ? [number("stalled", "Stalled", "time in which the next byte did not come although it could have; part of the phases, ms", stalls, (lane) => msOrNothing(stalls()[lane]))] : []),
    number("requests", "Reqs", "requests", () => Float64Array.from({ length: model.count }, (_, lane) => model.size(lane, "exchanges")), (lane) => count(model.size(lane, "exchanges"))),
    text("handshake", "Handshake", "kind of TLS handshake", () => ranks(Array.from({ length: model.count }, (_, lane) => handshakeWords(model, lane))), (lane) => handshakeWords(model, lane)),
    number("bytes", "Bytes", "both ways, without repetitions", lanesOf("bytes_client", "bytes_server"), (lane) => bytes(sum(lane, "bytes_client", "bytes_server"))),
    number("resent", "Resent", "retransmitted segments", lanesOf(...resent), (lane) => {
      const again = sum(lane, ...resent);
      return again ? count(again) : "";
    }),
    textIn("lanes", "state", "state", "State", ""),
  ];
  return { id: "connections", title: "Connections", rows: model.count, columns, lane: (row) => row, first: "stream" };
}

/**
 * @param {Model} model
 * @returns {Listing}
 */
export function requestsTable(model) {
  const { number, numberIn, textIn } = columnsOf(model);
  const table = model.tables.exchanges;
  const owner = table.values("lane");
  const times = ["request_ns", "wait_ns", "transfer_ns"].map((name) => table.values(name));
  const { valid } = table.column("request");
  /** @type {[string, string, string, boolean][]} */
  const texts = [["method", "Method", "", false], ["host", "Host", "", true], ["target", "Path", "what was asked for", true], ["answer", "Status", "", false]];
  const columns = [
    ...ends(model, owner),
    numberIn("exchanges", "number", "number", "No.", "the how manieth on its connection, from 0", String),
    textIn("exchanges", "protocol", "protocol", "Protocol", ""),
    ...texts.filter(([name]) => isUsed(model, "exchanges", name)).map(([name, title, help, clipped]) => textIn("exchanges", name, name, title, help, clipped)),
    numberIn("exchanges", "starts", "request", "Starts", "ms since the start of the capture", inMs),
    number("took", "Took", "from the first byte of the request to the last of its response, ms", () => added(times).map((ns, row) => (valid && !valid[row] ? NaN : ns)), (row) => (valid && !valid[row] ? "" : inMs(times.reduce((all, ns) => all + ns[row], 0)))),
    { ...numberIn("exchanges", "request", "request_ns", "request", "from its first to its last byte, ms", msOrNothing), swatch: "request" },
    { ...numberIn("exchanges", "wait", "wait_ns", "wait", "from the last byte of the request to the first of its response, ms", msOrNothing), swatch: "wait" },
    { ...numberIn("exchanges", "transfer", "transfer_ns", "transfer", "from the first to the last byte of the response, ms", msOrNothing), swatch: "transfer" },
    numberIn("exchanges", "up", "request_bytes", "Sent", "bytes of the request", bytes),
    numberIn("exchanges", "down", "response_bytes", "Received", "bytes of the response", bytes),
    numberIn("exchanges", "frame", "request_frame", "Frame", "first frame of the request", String),
  ];
  return { id: "requests", title: "Requests", rows: table.length, columns, lane: (row) => owner[row], first: "starts" };
}

/**
 * What stores were asked, by shape. A row is about the connection with the longest wait, which may not be on the page.
 * @param {Model} model
 * @returns {Listing}
 */
export function queriesTable(model) {
  const table = model.tables.queries;
  if (!table) return { id: "queries", title: "Queries", rows: 0, columns: [], lane: null, first: "rank" };
  const { number, text, numberIn, textIn } = columnsOf(model);
  const [ips, ports, fronts, linked] = ["server_ip", "server_port", "fronts", "linked"].map((name) => table.column(name));
  const server = (/** @type {number} */ row) => endpoint(ips.get(row), ports.get(row));
  const each = (/** @type {number} */ row) => (fronts.get(row) ? linked.get(row) / fronts.get(row) : NaN);
  const rows = { length: table.length };
  const columns = [
    number("rank", "No.", "place by total wait", () => Float64Array.from(rows, (_, row) => row), (row) => String(row + 1)),
    textIn("queries", "shape", "shape", "Query", "? stands for values, which are not kept", true),
    text("server", "Server", "the store that was asked", () => ranks(Array.from(rows, (_, row) => server(row))), server, true),
    textIn("queries", "protocol", "protocol", "Protocol", ""),
    numberIn("queries", "count", "count", "Count", "how often it was asked", count),
    { ...number("total", "Total", "all waits for it, ms; pipelined queries wait at the same time", () => table.values("total_ns"), (row) => (table.column("waits").get(row) ? inMs(table.column("total_ns").get(row)) : "")), swatch: "wait" },
    numberIn("queries", "p50", "p50_ns", "p50", "half of the waits were no longer, ms", inMs),
    numberIn("queries", "p95", "p95_ns", "p95", "19 of 20 waits were no longer, ms", inMs),
    numberIn("queries", "worst", "worst_ns", "Worst", "the longest wait, ms; a click shows its connection", inMs),
    numberIn("queries", "frame", "frame", "Frame", "first frame of the query with the longest wait", String),
    ...(isUsed(model, "queries", "errors") ? [numberIn("queries", "errors", "errors", "Errors", "answers that were an error", (errors) => (errors ? count(errors) : ""))] : []),
    ...(isUsed(model, "queries", "fronts") ? [
      numberIn("queries", "fronts", "fronts", "Requests", "requests to the application that asked it, as far as links tell", (requests) => (requests ? count(requests) : "")),
      number("each", "Each", "how often each of these requests asked it, on average", () => Float64Array.from(rows, (_, row) => each(row)), (row) => (fronts.get(row) ? String(Math.round(10 * each(row)) / 10) : "")),
    ] : []),
  ];
  return { id: "queries", title: "Queries", rows: table.length, columns, lane: (row) => table.column("lane").get(row), first: "rank" };
}

/**
 * @param {Model} model
 * @returns {Listing}
 */
export function handshakesTable(model) {
  const { numberIn, textIn } = columnsOf(model);
  const table = model.tables.handshakes;
  const owner = table.values("lane");
  const optional = (/** @type {string} */ name, /** @type {Shown} */ column) => (isUsed(model, "handshakes", name) ? [column] : []);
  const columns = [
    ...ends(model, owner),
    ...optional("sni", textIn("handshakes", "sni", "sni", "SNI", "the name that the client asked for", true)),
    textIn("handshakes", "version", "version", "Version", ""),
    textIn("handshakes", "cipher", "cipher", "Cipher", "", true),
    ...optional("named_group", textIn("handshakes", "group", "named_group", "Group", "of the key exchange")),
    ...optional("alpn", textIn("handshakes", "alpn", "alpn", "ALPN", "protocol that was agreed on")),
    textIn("handshakes", "kind", "kind", "Kind", "full, or resumed how"),
    textIn("handshakes", "outcome", "outcome", "Outcome", ""),
    ...optional("alert", textIn("handshakes", "alert", "alert", "Alert", "")),
    numberIn("handshakes", "starts", "hello", "Starts", "ms since the start of the capture", inMs),
    { ...numberIn("handshakes", "took", "ready_ns", "Took", "until the client may send its first application byte, ms", inMs), swatch: "tls" },
    numberIn("handshakes", "trips", "round_trips", "Trips", "round trips", String),
    ...optional("certificate_bytes", numberIn("handshakes", "certificates", "certificate_bytes", "Certificates", "bytes of the server's certificates", bytes)),
    numberIn("handshakes", "bytes", "bytes", "Bytes", "both ways", bytes),
  ];
  return { id: "handshakes", title: "Handshakes", rows: table.length, columns, lane: (row) => owner[row], first: "starts" };
}

const SEVERITY_ORDER = ["note", "warning", "serious"];

/**
 * @param {Model} model
 * @param {Record<string, any>[]} listed the findings, in the order of the page
 * @returns {Listing}
 */
export function findingsTable(model, listed) {
  const { number, text } = columnsOf(model);
  const numberOf = (/** @type {string} */ name) => () => Float64Array.from(listed, (finding) => finding[name]);
  const column = (/** @type {string} */ name, /** @type {string} */ title, /** @type {string} */ help) => text(name, title, help, () => ranks(listed.map((finding) => finding[name])), (row) => listed[row][name], true);
  const columns = [
    number("rank", "No.", "place in the list of findings", () => Float64Array.from(listed, (_, row) => row), (row) => String(row + 1)),
    text("severity", "Severity", "", () => Float64Array.from(listed, (finding) => -SEVERITY_ORDER.indexOf(finding.severity)), (row) => listed[row].severity),
    column("title", "Finding", ""),
    column("where", "Where", ""),
    column("name", "Name", "as in: conchart findings NAME"),
    number("connections", "Connections", "on which it happened", () => Float64Array.from(listed, (finding) => finding.streams.size), (row) => count(listed[row].streams.size)),
    number("times", "Delays", "how many stretches of time it explains: each one delayed a connection or a request", numberOf("count"), (row) => count(listed[row].count)),
    number("cost", "Cost", "time that users waited for it, ms; what a finding brings with it is in the cost of that finding, too", numberOf("cost_ns"), (row) => msOrNothing(listed[row].cost_ns)),
  ];
  return { id: "findings", title: "Findings", rows: listed.length, columns, lane: null, first: "rank" };
}

/**
 * What Wireshark is told to show a connection.
 * @param {Model} model
 * @param {number} lane
 */
export const filterOf = (model, lane) => `${model.fact(lane, "transport")}.stream eq ${model.fact(lane, "transport_stream")}`;
