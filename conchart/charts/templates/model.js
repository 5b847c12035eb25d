/* The tables in the page's data block, as objects that know each other. */

function rowsOf(table) {
  const names = Object.keys(table || {});
  const length = names.length ? table[names[0]].length : 0;
  return Array.from({ length }, (_, i) => Object.fromEntries(names.map((name) => [name, table[name][i]])));
}

/* What a complete handshake was; of one in an established connection, encryption may hide it. */
const handshakeKind = (h) => h.kind || (h.number > 0 ? "renegotiation" : "unknown");

function readModel() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const groups = rowsOf(data.groups);
  const lanes = rowsOf(data.lanes);
  const byStream = new Map();
  for (const lane of lanes) {
    Object.assign(lane, { phases: [], exchanges: [], handshakes: [], packets: [], stalls: [], costs: {} });
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
  for (const lane of lanes) {
    lane.handshake = [...new Set(lane.handshakes.map((h) => (h.outcome === "complete" ? handshakeKind(h) : h.outcome)))].join(", ");
    lane.version = [...new Set(lane.handshakes.map((h) => h.version).filter(Boolean))].join(", ");
    lane.search = [
      `#${lane.stream}`, lane.filter, lane.client, lane.server, lane.name, lane.app, lane.state, lane.handshake, lane.version,
      ...lane.exchanges.slice(0, 50).map((x) => `${x.method || ""} ${x.host || ""}${x.target || ""} ${x.answer || ""}`),
    ].filter(Boolean).join("\n").toLowerCase();
  }
  return { kinds: data.kinds, span: data.span_ns, groups, lanes, byStream, hasPackets: "packets" in data };
}
