/* The tables of the page as things that know each other. Columns stay columns: an object is made of a connection when
   somebody looks at it, so that a page of 200,000 opens as fast as one of six. */

import { Calendar } from "./axis.js";
import { readBlocks } from "./decode.js";
import { kindsDrawn, phasesDrawn } from "./drawn.js";
import { LeftOut } from "./left.js";
import { MOVED, Viewpoints } from "./viewpoint.js";

/** @typedef {import("./decode.js").Table} Table */
/** @typedef {Record<string, any>} Row */
/** @typedef {Row & {name: string, colour: string}} Kind a kind of phase, or a step of a wait, or what idling was that is waited for */
/** @typedef {Row & {index: number, stream: number, phases: Row[], exchanges: Row[], handshakes: Row[], packets: Row[], stalls: Row[], races: Row[], notes: Row[], links: Row[], splits: Row[], costs: Record<string, number>}} Lane */

/* Connections that are kept as objects: more than any view shows. */
const MAX_CACHED = 4000;
const DETAILS = ["phases", "exchanges", "handshakes", "packets", "stalls", "races", "notes"];
/* What only ladders show. */
const LADDER = ["rungs", "silences", "facts", "clocks", "fields", "columns", "ways", "logged"];

/**
 * An address with its port (RFC 3986 section 3.2.2: IPv6 stands in brackets).
 * @param {string} ip
 * @param {number} port
 */
export const endpoint = (ip, port) => (ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`);

/**
 * Several values in a row, each once.
 * @param {(string | null)[]} values
 */
const each = (values) => [...new Set(values.filter(Boolean))].join(", ");

/**
 * When an exchange, or a connection in which none is known, began and was over.
 * @param {Lane} lane
 * @param {Row} [x]
 */
const extent = (lane, x) => (x && x.request !== null
  ? [x.request, x.request + x.request_ns + x.wait_ns + x.transfer_ns]
  : [lane.opened, lane.opened + lane.duration]);

/**
 * Where a link is drawn: on the back's lane from what it was asked, or from the connection that was opened for it, to
 * its answer; on the front's lane, the same time of it.
 * @param {Row} link
 */
function placeJoin(link) {
  const [, connecting, securing] = link.times;
  link.inBack = extent(link.back.lane, link.back.exchange);
  if (connecting || securing) link.inBack[0] = link.back.lane.opened;
  const [from, to] = extent(link.front.lane, link.front.exchange);
  link.inFront = link.inBack.map((/** @type {number} */ at) => Math.min(Math.max(at, from), to));
}

/**
 * Where the back's steps began, as far as its lane says: TCP, TLS, request, wait.
 * @param {{lane?: Lane, exchange?: Row}} end
 */
function beginnings({ lane, exchange }) {
  const [handshake] = lane ? lane.handshakes : [];
  const hasRequest = exchange && exchange.request !== null;
  return [lane && lane.opened, handshake && handshake.hello, hasRequest ? exchange.request : null, hasRequest ? exchange.request + exchange.request_ns : null];
}

/**
 * Lay the parts of a wait end to end, after those of the links before: the steps where they began, and in between what
 * the proxy took by itself. Where a step began is not known, it comes after that.
 * @param {Row} link
 */
function splitWait(link) {
  const { exchange } = link.front;
  if (!exchange || exchange.request === null) return;
  exchange.pieces ||= [];
  const { pieces } = exchange;
  let at = pieces.length ? pieces[pieces.length - 1].end : exchange.request + exchange.request_ns;
  const add = (/** @type {number} */ kind, /** @type {number} */ ns) => {
    if (ns > 0) pieces.push({ kind, start: at, end: at + ns });
    at += ns;
  };
  let [pause] = link.times;
  const rest = (/** @type {number} */ ns) => {
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

/** Everything that the page knows. */
export class Model {
  /**
   * @param {any} data
   * @param {Record<string, Table>} tables
   */
  constructor(data, tables) {
    /** @type {Kind[]} */
    this.kinds = data.kinds;
    /** @type {Kind[]} */
    this.steps = data.steps;
    this.stallKinds = data.stall_kinds;
    /** Words of connections, handshakes, requests, stalls. @type {Record<string, import("./format.js").Fact>} */
    this.facts = data.facts;
    /** What the detail panel lists of a connection. @type {import("./format.js").Fact[]} */
    this.panel = data.panel;
    /** Words from the front to the back and from the back to the front: of a request, of a connection that is handed on. @type {[string, string][]} */
    this.linked = data.linked;
    /** Why other programs print other figures. @type {string[]} */
    this.clocksDiffer = data.clocks_differ;
    /** The stream at whose ladder the page opens. @type {number | null} */
    this.explained = data.explained;
    /** Of the capture, in ns. @type {number} */
    this.span = data.span_ns;
    /** A round trip below this is as good as none: what it moves is not inferred. @type {number} */
    this.routedNs = data.routed_ns;
    /** Dates, in ns since the epoch. */
    this.calendar = new Calendar(BigInt(data.start_at), data.folds.map((/** @type {any} */ fold) => ({ ...fold, ns: BigInt(fold.ns) })));
    /** @type {{endpoint: string, title: string, role: string}[]} */
    this.groups = data.groups.endpoint.map((/** @type {string} */ name, /** @type {number} */ i) => ({ endpoint: name, title: data.groups.title[i], role: data.groups.role[i] }));
    this.tables = tables;
    for (const [name, columns] of MOVED) if (tables[name]) tables[name].widen(columns);
    this.count = tables.lanes.length;
    const { lanes, phases } = tables;
    /** By lane: its stream, its group, when it was opened and closed. */
    this.streams = lanes.values("stream");
    this.group = lanes.values("group");
    this.opened = lanes.values("opened");
    this.closed = Float64Array.from(this.opened, (at, i) => at + lanes.values("duration")[i]);
    /** By table: where the rows of each lane begin. @type {Record<string, Uint32Array>} */
    this.offsets = {};
    for (const name of [...DETAILS, ...LADDER, "links"]) if (tables[name]) this.offsets[name] = tables[name].offsets(this.count);
    this.phases = this.placePhases(phases);
    this.stalls = this.placeStalls();
    /** Kinds of phases as they are drawn. */
    this.drawnKinds = kindsDrawn(this.kinds, this.stallKinds);
    this.drawn = this.placeDrawn();
    /** By kind of phase and lane: its time. */
    this.costs = this.sumCosts();
    /** @type {Map<number, number>} */
    this.laneOf = new Map();
    this.streams.forEach((stream, lane) => this.laneOf.set(stream, lane));
    /** @type {Map<number, Row>} */
    this.findings = new Map(data.findings.map((/** @type {Row} */ finding) => [finding.number, { ...finding, streams: new Set(finding.streams) }]));
    /** Connections that the page does not draw. @type {LeftOut | null} */
    this.left = tables.left_times ? new LeftOut(this) : null;
    /** @type {Map<number, Lane>} */
    this.cache = new Map();
    this.backs = this.linksByBack();
    /** The end as which the whole page tells its times, not the lanes alone. @type {string | null} */
    this.madeFrom = data.seen_from;
    /** Who saw the packets. */
    this.viewpoint = "capture";
    /** How far packets moved from where they were captured, at most, in ns. */
    this.reach = 0;
    /** @type {Viewpoints | null} */
    this.viewpoints = null;
    /** The first instant: before the capture's where an end sent what began it. */
    this.begun = 0;
    /** By lane: how long it was stalled, once somebody asks. @type {Float64Array | undefined} */
    this.stalled = undefined;
  }

  /**
   * Tell all times as they were seen there.
   * @param {string} viewpoint
   */
  seeFrom(viewpoint) {
    this.viewpoints ||= new Viewpoints(this);
    this.reach = this.viewpoints.see(viewpoint);
    this.viewpoint = viewpoint;
    this.drawn = this.placeDrawn();
    this.costs = this.sumCosts();
    this.begun = /** @type {Float64Array} */ (this.opened).reduce((least, at) => Math.min(least, at), 0);
    this.span = viewpoint === "capture" ? this.viewpoints.span : this.closed.reduce((most, at) => Math.max(most, at), 1);
    this.stalled = undefined;
    this.cache.clear();
  }

  /**
   * Phases touch: the durations say where each begins.
   * @param {Table} phases
   */
  placePhases(phases) {
    const from = this.offsets.phases;
    const durations = phases.values("duration");
    const [start, end] = [new Float64Array(phases.length), new Float64Array(phases.length)];
    for (let lane = 0; lane < this.count; lane += 1) {
      let at = this.opened[lane];
      for (let i = from[lane]; i < from[lane + 1]; i += 1) {
        start[i] = at;
        at += durations[i];
        end[i] = at;
      }
    }
    return { from, start, end, kind: Uint8Array.from(phases.values("kind")), inferred: Uint8Array.from(phases.values("inferred")) };
  }

  /** Where the stalls of each lane are. */
  placeStalls() {
    const { stalls } = this.tables;
    const [start, duration] = [stalls.values("start"), stalls.values("duration")];
    return { from: this.offsets.stalls, start, end: Float64Array.from(start, (at, i) => at + duration[i]), kind: stalls.values("kind") };
  }

  /** Phases with what was owed while nothing else went on. */
  placeDrawn() {
    return phasesDrawn(this.phases, this.stalls, this.drawnKinds, (kind) => this.stallKinds[kind].owed);
  }

  sumCosts() {
    const sums = this.kinds.map(() => new Float64Array(this.count));
    const { from, start, end, kind } = this.phases;
    for (let lane = 0; lane < this.count; lane += 1)
      for (let i = from[lane]; i < from[lane + 1]; i += 1) sums[kind[i]][lane] += end[i] - start[i];
    return sums;
  }

  /** Rows of links by the lane of their back. */
  linksByBack() {
    /** @type {Map<number, number[]>} */
    const backs = new Map();
    if (!this.tables.links) return backs;
    const back = this.tables.links.column("back_lane");
    for (let row = 0; row < this.tables.links.length; row += 1) {
      const lane = back.get(row);
      if (lane === null) continue;
      const rows = backs.get(lane);
      if (rows) rows.push(row);
      else backs.set(lane, [row]);
    }
    return backs;
  }

  /**
   * What a column of the connections says of a lane.
   * @param {number} lane
   * @param {string} column
   */
  fact(lane, column) {
    return this.tables.lanes.column(column).get(lane);
  }

  /**
   * @param {number} lane
   * @param {"client" | "server"} side
   */
  endpoint(lane, side) {
    return endpoint(this.fact(lane, `${side}_ip`), this.fact(lane, `${side}_port`));
  }

  /**
   * Who owns the socket of an end; null where nothing says so.
   * @param {number} lane
   * @param {"client" | "server"} side
   */
  owner(lane, side) {
    const { lanes } = this.tables;
    return lanes.columns.has(`${side}_who`) ? this.fact(lane, `${side}_who`) : null;
  }

  /**
   * How many rows of a table a lane has.
   * @param {number} lane
   * @param {string} table
   */
  size(lane, table) {
    const offsets = this.offsets[table];
    return offsets ? offsets[lane + 1] - offsets[lane] : 0;
  }

  /**
   * The rows of a table that belong to a lane, as objects.
   * @param {number} lane
   * @param {string} table
   */
  rowsOf(lane, table) {
    const offsets = this.offsets[table];
    if (!offsets) return [];
    return Array.from({ length: offsets[lane + 1] - offsets[lane] }, (_, i) => this.tables[table].row(offsets[lane] + i));
  }

  /**
   * A connection with what happened on it, but for its links.
   * @param {number} index
   * @returns {Lane}
   */
  bare(index) {
    const cached = this.cache.get(index);
    if (cached) return cached;
    if (this.cache.size >= MAX_CACHED) this.cache.clear();
    const row = this.tables.lanes.row(index);
    const from = this.offsets.phases[index];
    const lane = /** @type {Lane} */ (/** @type {Row} */ (Object.assign(row, { index, splits: [], links: [], costs: {} })));
    for (const name of DETAILS) lane[name] = this.rowsOf(index, name);
    lane.phases.forEach((phase, i) => {
      const [start, end] = [this.phases.start[from + i], this.phases.end[from + i]];
      Object.assign(phase, { start, end, duration: end - start, inferred: this.phases.inferred[from + i] });
    });
    // Seen from elsewhere, some last no more.
    for (const name of ["phases", "stalls"]) lane[name] = lane[name].filter((/** @type {Row} */ stretch) => stretch.duration > 0);
    for (const stall of lane.stalls) Object.assign(stall, this.stallKinds[stall.kind], { end: stall.start + stall.duration, confidence: stall.confidence / 100 });
    for (const x of lane.exchanges) Object.assign(x, { links: [], confidence: x.confidence === null ? null : x.confidence / 100 });
    this.kinds.forEach((/** @type {Row} */ kind, /** @type {number} */ i) => {
      if (this.costs[i][index]) lane.costs[kind.name] = this.costs[i][index];
    });
    Object.assign(lane, {
      filter: `${lane.transport}.stream eq ${lane.transport_stream}`,
      client: endpoint(lane.client_ip, lane.client_port),
      server: endpoint(lane.server_ip, lane.server_port),
      bytes: lane.bytes_client + lane.bytes_server,
      retransmits: lane.retransmits_client + lane.retransmits_server + lane.syn_retransmits,
      requests: lane.exchanges.length,
      stalled_ns: lane.stalls.reduce((sum, stall) => sum + stall.duration, 0),
      handshake: each(lane.handshakes.map((h) => h.result)),
      version: each(lane.handshakes.map((h) => h.version)),
      is_udp: lane.transport === "udp",
      linked: false,
    });
    this.cache.set(index, lane);
    return lane;
  }

  /**
   * A connection with its links, and the waits of its exchanges split by them.
   * @param {number} index
   * @returns {Lane}
   */
  lane(index) {
    const lane = this.bare(index);
    if (lane.linked) return lane;
    lane.linked = true;
    const { links } = this.tables;
    if (!links) return lane;
    const fronts = Array.from({ length: this.size(index, "links") }, (_, i) => this.offsets.links[index] + i);
    for (const row of fronts) {
      const link = this.link(row);
      (link.front.exchange || lane).links.push(link);
      if (link.times.length) splitWait(link);
    }
    for (const row of this.backs.get(index) || []) {
      const link = this.link(row);
      (link.back.exchange || lane).links.push(link);
    }
    const waits = lane.phases.filter((phase) => this.kinds[phase.kind].name === "wait" && phase.exchange !== null);
    const byNumber = new Map(lane.exchanges.map((x) => [x.number, x]));
    for (const phase of waits) {
      for (const piece of byNumber.get(phase.exchange)?.pieces || []) {
        const [start, end] = [Math.max(piece.start, phase.start), Math.min(piece.end, phase.end)];
        if (start < end) lane.splits.push({ kind: piece.kind, start, end, duration: end - start, inferred: false });
      }
    }
    return lane;
  }

  /**
   * Which exchange caused which. Of a connection that is handed through, no exchange is known.
   * @param {number} row
   */
  link(row) {
    const values = this.tables.links.row(row);
    const end = (/** @type {number | null} */ index, /** @type {number} */ stream, /** @type {number | null} */ number) => {
      const lane = index === null ? undefined : this.bare(index);
      return { stream, lane, exchange: number === null ? undefined : lane?.exchanges.find((x) => x.number === number) };
    };
    const times = this.steps.map((/** @type {Row} */ step) => values[`${step.name}_ns`]);
    /** @type {Row} */
    const link = {
      front: end(values.lane, this.streams[values.lane], values.exchange),
      back: end(values.back_lane, values.back_stream, values.back_exchange),
      method: values.method, confidence: values.confidence / 100, handed: values.exchange === null,
      // What a wait was spent on behind the proxy is told of the capture point's times.
      times: times.includes(null) || this.viewpoint !== "capture" ? [] : times,
    };
    if (link.back.lane) placeJoin(link);
    return link;
  }
}

/**
 * @param {Document} document
 */
export async function readModel(document) {
  const { data, tables } = await readBlocks(document);
  return new Model(data, tables);
}
