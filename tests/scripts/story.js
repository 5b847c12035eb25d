/* Four connections, as a page would carry them: enough for every kind of search. */

import { Column, Table } from "../../conchart/outputs/page/scripts/decode.js";
import { Model } from "../../conchart/outputs/page/scripts/model.js";

const MS = 1e6;

/**
 * A column of texts or numbers in which null is not known.
 * @param {string} name
 * @param {(string | number | null)[]} values
 */
function column(name, values) {
  const valid = values.includes(null) ? Uint8Array.from(values, (value) => Number(value !== null)) : null;
  if (!values.some((value) => typeof value === "string")) return new Column(name, Float64Array.from(values, (value) => Number(value ?? 0)), valid, null);
  const texts = [...new Set(values.filter((value) => value !== null).map(String))];
  return new Column(name, Int32Array.from(values, (value) => Math.max(0, texts.indexOf(String(value)))), valid, texts);
}

/**
 * A table of columns, as decode.js would have read it.
 * @param {Record<string, (string | number | null)[]>} columns
 */
function table(columns) {
  const made = new Table([], Object.values(columns)[0].length, new Uint8Array());
  for (const [name, values] of Object.entries(columns)) made.columns.set(name, column(name, values));
  return made;
}

export function story() {
  const none = [0, 0, 0, 0];
  const lanes = {
    stream: [0, 7, 2, 3], group: [0, 0, 1, 0], transport: ["tcp", "tcp", "tcp", "tcp"], transport_stream: [0, 7, 2, 3],
    client_ip: ["10.0.0.5", "10.0.0.50", "2001:db8::7", "10.0.0.51"], client_port: [51000, 51001, 51002, 51003],
    server_ip: ["10.0.0.9", "10.0.0.9", "10.0.0.10", "10.0.0.9"], server_port: [443, 443, 80, 443],
    name: ["shop.example", "shop.example", "api.example", null], app: ["tls", "tls", "http/1.1", null], state: ["complete", "complete", "complete", "refused"],
    opened: [0, 10 * MS, 20 * MS, 30 * MS], duration: [100 * MS, 60 * MS, 40 * MS, 500], waited_ns: [90 * MS, 50 * MS, 10 * MS, 0],
    packets_client: [5, 5, 5, 2], packets_server: [5, 5, 5, 1], bytes_client: [500, 500, 1000, 0], bytes_server: [500, 900, 1e6, 0],
    retransmits_client: none, retransmits_server: none, syn_retransmits: [0, 0, 0, 1],
  };
  const phases = { lane: [0, 0, 1, 2, 3], kind: [1, 3, 3, 4, 0], duration: [90 * MS, 10 * MS, 60 * MS, 40 * MS, 500], inferred: [0, 0, 0, 0, 0], start_frame: [1, 2, 3, 4, 5], end_frame: [1, 2, 3, 4, 5], exchange: [null, 0, 0, 0, null] };
  const exchanges = {
    lane: [0, 1, 1, 2], number: [0, 0, 1, 0], request: [90 * MS, 11 * MS, 20 * MS, 21 * MS], protocol: ["tls", "http/1.1", "http/1.1", "http/1.1"], method: [null, "GET", "POST", "GET"],
    host: [null, "shop.example", "shop.example", "api.example"], target: [null, "/", "/login?a=b c", "/items"], answer: ["200", "200", "503", "200"],
    request_bytes: [1, 2, 3, 4], response_bytes: [1, 2, 3, 4], request_frame: [1, 2, 3, 4], request_ns: none, wait_ns: [5 * MS, 10 * MS, 30 * MS, 5 * MS], transfer_ns: none, service_ns: none,
  };
  const handshakes = {
    lane: [0, 1], number: [0, 0], hello: [1, 11 * MS], ready_ns: [90 * MS, 5 * MS], version: ["TLSv1.2", "TLSv1.3"], cipher: ["AES", "AES"], named_group: ["x25519", "x25519"], sni: ["shop.example", "shop.example"],
    alpn: ["h2", "h2"], kind: [null, "psk"], outcome: ["failed", "complete"], result: ["failed", "psk"], alert: ["bad certificate", null], round_trips: [2, 1], certificate_bytes: [3000, 0], bytes: [4000, 900],
  };
  const stalls = { lane: [2], kind: [1], start: [25 * MS], duration: [8 * MS] };
  const data = {
    kinds: ["syn", "tls", "request", "wait", "transfer", "idle", "close", "unseen"].map((name) => ({ name, title: name })), steps: [],
    stall_kinds: [{ name: "rto", word: "lost" }, { name: "nagle", word: "held" }], span_ns: 100 * MS, start_at: "0", folds: [],
    groups: { endpoint: ["10.0.0.9:443", "10.0.0.10:80"], title: ["shop.example", "api.example"], role: ["front", "backend"] },
    findings: [
      { number: 0, name: "slow-opening", title: "Connections are opened slowly", where: "shop.example", severity: "serious", count: 2, cost_ns: 5 * MS, streams: [0, 2] },
      { number: 1, name: "login-waits", title: "Someone waits", where: "", severity: "warning", count: 1, cost_ns: 7 * MS, streams: [7] },
      { number: 2, name: "cut", title: "Something else", where: "", severity: "note", count: 1, cost_ns: 0, streams: [] },
    ],
  };
  return new Model(data, Object.fromEntries(Object.entries({ lanes, phases, exchanges, handshakes, stalls }).map(([name, columns]) => [name, table(columns)])));
}
