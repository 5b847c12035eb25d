/* The tables in the page's data block, as objects that know each other. */

function rowsOf(table) {
  const names = Object.keys(table || {});
  const length = names.length ? table[names[0]].length : 0;
  return Array.from({ length }, (_, i) => Object.fromEntries(names.map((name) => [name, table[name][i]])));
}

/* What a complete handshake was; of one in an established connection, encryption may hide it. */
const handshakeKind = (h) => h.kind || (h.number > 0 ? "renegotiation" : "unknown");

/* When an exchange, or a connection in which none is known, began and was over. */
const extent = (lane, x) => (x && x.request !== null
  ? [x.request, x.request + x.request_ns + x.wait_ns + x.transfer_ns]
  : [lane.opened, lane.opened + lane.duration]);

/* Where a link is drawn: on the back's lane from what it was asked, or from the connection that was opened for it, to
   its answer; on the front's lane, the same time of it. */
function placeJoin(link) {
  const [, connecting, securing] = link.times;
  link.inBack = extent(link.back.lane, link.back.exchange);
  if (connecting || securing) link.inBack[0] = link.back.lane.opened;
  const [from, to] = extent(link.front.lane, link.front.exchange);
  link.inFront = link.inBack.map((at) => Math.min(Math.max(at, from), to));
}

/* Which exchange caused which: both know the link. Of a connection that is handed through the lanes know it.
   What is known of a front's wait becomes pieces of its bar. */
function readLinks(data, byStream) {
  const known = new Map();
  for (const lane of byStream.values()) for (const x of lane.exchanges) known.set(`${lane.stream}/${x.number}`, Object.assign(x, { links: [] }));
  for (const row of rowsOf(data.links)) {
    const end = (stream, number) => ({ stream, lane: byStream.get(stream), exchange: number === null ? undefined : known.get(`${stream}/${number}`) });
    const link = { front: end(row.stream, row.exchange), back: end(row.back_stream, row.back_exchange), method: row.method, confidence: row.confidence, handed: row.exchange === null };
    const times = data.steps.map(({ name }) => row[`${name}_ns`]);
    link.times = times.includes(null) ? [] : times;
    for (const { lane, exchange } of [link.front, link.back]) if (lane) (exchange || lane).links.push(link);
    if (link.back.lane) placeJoin(link);
    if (link.times.length) splitWait(link);
  }
  for (const lane of byStream.values()) for (const phase of lane.phases) {
    if (data.kinds[phase.kind].name !== "wait" || phase.exchange === null) continue;
    const { pieces } = known.get(`${lane.stream}/${phase.exchange}`) || {};
    for (const piece of pieces || []) {
      const [start, end] = [Math.max(piece.start, phase.start), Math.min(piece.end, phase.end)];
      if (start < end) lane.splits.push({ kind: piece.kind, start, end, duration: end - start, inferred: 0 });
    }
  }
}

/* Where the back's steps began, as far as its lane says: TCP, TLS, request, wait. */
function beginnings({ lane, exchange }) {
  const [handshake] = lane ? lane.handshakes : [];
  const asked = exchange && exchange.request !== null;
  return [lane && lane.opened, handshake && handshake.hello, asked ? exchange.request : null, asked ? exchange.request + exchange.request_ns : null];
}

/* Lay the parts of a wait end to end, after those of the links before: the steps where they began, and in between what
   the proxy took by itself. Where a step began is not known, it comes after that. */
function splitWait(link) {
  const { exchange } = link.front;
  if (!exchange || exchange.request === null) return;
  exchange.pieces ||= [];
  const { pieces } = exchange;
  let at = pieces.length ? pieces[pieces.length - 1].end : exchange.request + exchange.request_ns;
  const add = (kind, ns) => {
    if (ns > 0) pieces.push({ kind, start: at, end: at + ns });
    at += ns;
  };
  let [pause] = link.times;
  const rest = (ns) => {
    add(0, ns);
    pause -= ns;
  };
  beginnings(link.back).forEach((began, i) => {
    const ns = link.times[i + 1];
    if (ns) rest(Math.min(pause, Math.max(0, (began ?? Infinity) - at)));
    add(i + 1, ns);
  });
  rest(pause);
  add(5, link.times[5]);
}

function readModel() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const groups = rowsOf(data.groups);
  const lanes = rowsOf(data.lanes);
  const byStream = new Map();
  for (const lane of lanes) {
    Object.assign(lane, { phases: [], exchanges: [], handshakes: [], packets: [], stalls: [], links: [], splits: [], costs: {} });
    lane.filter = `${lane.transport}.stream eq ${lane.transport_stream}`;
    lane.bytes = lane.bytes_client + lane.bytes_server;
    lane.retransmits = lane.retransmits_client + lane.retransmits_server + lane.syn_retransmits;
    byStream.set(lane.stream, lane);
  }
  for (const phase of rowsOf(data.phases)) {
    const lane = byStream.get(phase.stream);
    const kind = data.kinds[phase.kind].name;
    phase.end = phase.start + phase.duration;
    lane.costs[kind] = (lane.costs[kind] || 0) + phase.duration;
    lane.phases.push(phase);
  }
  for (const stall of rowsOf(data.stalls)) {
    stall.kind = data.stall_kinds[stall.kind];
    stall.end = stall.start + stall.duration;
    byStream.get(stall.stream).stalls.push(stall);
  }
  for (const name of ["exchanges", "handshakes", "packets"])
    for (const row of rowsOf(data[name])) byStream.get(row.stream)[name].push(row);
  readLinks(data, byStream);
  for (const lane of lanes) {
    lane.handshake = [...new Set(lane.handshakes.map((h) => (h.outcome === "complete" ? handshakeKind(h) : h.outcome)))].join(", ");
    lane.version = [...new Set(lane.handshakes.map((h) => h.version).filter(Boolean))].join(", ");
    lane.search = [
      `#${lane.stream}`, lane.filter, lane.client, lane.server, lane.name, lane.app, lane.state, lane.handshake, lane.version,
      ...lane.exchanges.slice(0, 50).map((x) => `${x.method || ""} ${x.host || ""}${x.target || ""} ${x.answer || ""}`),
    ].filter(Boolean).join("\n").toLowerCase();
  }
  const findings = new Map(rowsOf(data.findings).map((finding) => [finding.number, { ...finding, streams: new Set(finding.streams) }]));
  return { kinds: data.kinds, steps: data.steps, span: data.span_ns, groups, lanes, byStream, findings, hasPackets: "packets" in data };
}
