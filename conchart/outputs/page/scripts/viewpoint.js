/* Seen from an end: instants and durations as the client, or the server, of each connection saw them. The formula is that of
   conchart/analysis/seen_from.py; a test compares the two over all captures. */

import { firstAfter } from "./detail.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./decode.js").Table} Table */
/** @typedef {{begun: number, over: number, of: (byClient: number) => number}} Life of a connection: its first and last instant there, and how much later packets were there than here */

/** Who saw the packets. */
export const VIEWPOINTS = ["client", "capture", "server"];

/** What another viewpoint moves: numbers that may become larger than they travel. @type {[string, string[]][]} */
export const MOVED = [
  ["lanes", ["opened", "duration", "waited_ns"]], ["stalls", ["start", "duration"]], ["handshakes", ["hello", "ready_ns"]],
  ["exchanges", ["request", "request_ns", "wait_ns", "transfer_ns", "service_ns"]], ["packets", ["at"]],
];

/**
 * @param {number} at
 * @param {Life} life
 */
const clamped = (at, { begun, over }) => Math.min(Math.max(at, begun), over);

/** The instants of a page as they were captured, from which each viewpoint is worked out. */
export class Viewpoints {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    const { tables, phases, stalls } = model;
    /** By table and column: as captured. @type {Record<string, Record<string, Float64Array>>} */
    this.captured = {};
    for (const [name, columns] of MOVED)
      if (tables[name]) this.captured[name] = Object.fromEntries(columns.map((column) => [column, Float64Array.from(tables[name].values(column))]));
    this.span = model.span;
    this.closed = model.closed.slice();
    this.stallEnds = Float64Array.from(stalls.end);
    this.phases = { start: phases.start.slice(), end: phases.end.slice(), inferred: phases.inferred.slice() };
  }

  /**
   * Write what was seen from there over what is shown; how far packets moved at most.
   * @param {string} viewpoint
   */
  see(viewpoint) {
    const { model } = this;
    let reach = 0;
    const trips = viewpoint === "capture" ? null : model.tables.lanes.column(`least_rtt_${viewpoint}_ns`);
    for (let lane = 0; lane < model.count; lane += 1) {
      const far = trips?.get(lane) || 0;
      const [later, earlier] = [far - Math.floor(far / 2), -Math.floor(far / 2)];
      const [client, server] = viewpoint === "client" ? [earlier, later] : [later, earlier];
      reach = Math.max(reach, later);
      if (far) this.move(lane, (byClient) => (byClient ? client : server));
      else this.restore(lane);
    }
    return reach;
  }

  /**
   * As captured, also where no round trip is known.
   * @param {number} lane
   */
  restore(lane) {
    const { model } = this;
    for (const [name, columns] of Object.entries(this.captured)) {
      const [from, to] = name === "lanes" ? [lane, lane + 1] : [model.offsets[name][lane], model.offsets[name][lane + 1]];
      for (const [column, values] of Object.entries(columns)) /** @type {Float64Array} */ (model.tables[name].values(column)).set(values.subarray(from, to), from);
    }
    model.closed[lane] = this.closed[lane];
    for (let i = model.phases.from[lane]; i < model.phases.from[lane + 1]; i += 1)
      [model.phases.start[i], model.phases.end[i], model.phases.inferred[i]] = [this.phases.start[i], this.phases.end[i], this.phases.inferred[i]];
    for (let i = model.stalls.from[lane]; i < model.stalls.from[lane + 1]; i += 1) model.stalls.end[i] = this.stallEnds[i];
  }

  /**
   * The life of a connection: from the first of the bounds of its phases to the last of them.
   * @param {number} lane
   * @param {(byClient: number) => number} of
   * @returns {Life}
   */
  life(lane, of) {
    const { model, closed, captured } = this;
    const { lanes, phases } = model.tables;
    const byClient = phases.values("end_up");
    const bounds = [captured.lanes.opened[lane] + of(lanes.values("opened_up")[lane]), closed[lane] + of(lanes.values("closed_up")[lane])];
    let [begun, over] = [Math.min(...bounds), Math.max(...bounds)];
    for (let i = model.phases.from[lane]; i < model.phases.from[lane + 1]; i += 1) {
      const at = this.phases.end[i] + of(byClient[i]);
      begun = Math.min(begun, at);
      over = Math.max(over, at);
    }
    return { begun, over, of };
  }

  /**
   * @param {number} lane
   * @param {(byClient: number) => number} of
   */
  move(lane, of) {
    const { model, captured } = this;
    const life = this.life(lane, of);
    const { opened, duration } = this.values("lanes");
    [opened[lane], duration[lane]] = [life.begun, life.over - life.begun];
    model.closed[lane] = life.over;
    this.movePhases(lane, life);
    this.moveStalls(lane, life);
    this.moveExchanges(lane, life);
    this.moveHandshakes(lane, life);
    this.movePackets(lane, life);
    this.values("lanes").waited_ns[lane] = captured.lanes.waited_ns[lane] + this.waitedMore(lane);
  }

  /**
   * The columns of a table that move, as they are shown.
   * @param {string} name
   * @returns {Record<string, ArrayLike<number> & {[row: number]: number}>}
   */
  values(name) {
    return Object.fromEntries(Object.keys(this.captured[name]).map((column) => [column, this.model.tables[name].values(column)]));
  }

  /**
   * They touch, and no bound comes before an earlier one; some last no more.
   * @param {number} lane
   * @param {Life} life
   */
  movePhases(lane, { begun, over, of }) {
    const { phases, tables } = this.model;
    const byClient = tables.phases.values("end_up");
    const last = phases.from[lane + 1] - 1;
    let at = begun;
    for (let i = phases.from[lane]; i <= last; i += 1) {
      phases.start[i] = at;
      at = i === last ? over : Math.max(at, this.phases.end[i] + of(byClient[i]));
      phases.end[i] = at;
      const stretched = at - phases.start[i] - (this.phases.end[i] - this.phases.start[i]);
      phases.inferred[i] = this.phases.inferred[i] || Number(Math.abs(stretched) > this.model.routedNs);
    }
  }

  /**
   * They do not overlap; some last no more.
   * @param {number} lane
   * @param {Life} life
   */
  moveStalls(lane, life) {
    const { stalls, tables } = this.model;
    const { start, duration } = this.values("stalls");
    const [starts, ends] = ["start_up", "end_up"].map((name) => tables.stalls.values(name));
    let done = -Infinity;
    for (let i = stalls.from[lane]; i < stalls.from[lane + 1]; i += 1) {
      const begins = Math.max(done, clamped(this.captured.stalls.start[i] + life.of(starts[i]), life));
      const ended = clamped(this.stallEnds[i] + life.of(ends[i]), life);
      done = Math.max(done, ended);
      start[i] = begins;
      stalls.end[i] = Math.max(begins, ended);
      duration[i] = stalls.end[i] - begins;
    }
  }

  /**
   * What did not overtake what it answers does not do so there.
   * @param {number} lane
   * @param {Life} life
   */
  moveExchanges(lane, life) {
    const { offsets, tables } = this.model;
    const [own, way, heldBy] = [tables.exchanges.column("service_ns"), this.way(lane, life), this.heldIn(lane)];
    const { request, request_ns: requests, wait_ns: waits, transfer_ns: transfers } = this.captured.exchanges;
    const shown = this.values("exchanges");
    const columns = ["request", "request_ns", "answered"].map((name) => tables.exchanges.column(name));
    const answered = columns[2].values;
    const [there, back] = [life.of(1), life.of(0)];
    for (let i = offsets.exchanges[lane]; i < offsets.exchanges[lane + 1]; i += 1) {
      const [hasRequest, hasRequestEnd, isAnswered] = columns.map(({ valid }) => !valid || valid[i]);
      if (!hasRequest) continue;
      const done = clamped(request[i] + requests[i] + there, life);
      shown.request[i] = clamped(request[i] + there, life);
      if (hasRequestEnd) shown.request_ns[i] = done - shown.request[i];
      if (!isAnswered) continue;
      const [first, last] = [answered[i], answered[i] + transfers[i]].map((at) => {
        const seen = clamped(request[i] + at + back, life);
        return hasRequestEnd && answered[i] >= requests[i] ? Math.max(seen, done) : seen;
      });
      shown.wait_ns[i] = hasRequestEnd ? Math.max(0, first - done) : waits[i];
      shown.transfer_ns[i] = Math.max(0, last - first);
      if (!own.valid || own.valid[i]) shown.service_ns[i] = Math.max(0, shown.wait_ns[i] - way - heldBy(first) + heldBy(done));
    }
  }

  /**
   * How long a packet takes from there to the server and back.
   * @param {number} lane
   * @param {Life} life
   */
  way(lane, { of }) {
    const { model } = this;
    const [client, server] = ["client", "server"].map((end) => model.fact(lane, `least_rtt_${end}_ns`) || 0);
    return (model.fact(lane, "rtt_server_ns") || 0) + (of(0) > 0 ? client : -server);
  }

  /**
   * By an instant, for how long stalls had held up the waits of a connection; not what had arrived at the server.
   * @param {number} lane
   * @returns {(at: number) => number}
   */
  heldIn(lane) {
    const { phases, stalls, tables, stallKinds, kinds } = this.model;
    const of = tables.stalls.values("kind");
    /** @type {number[]} */
    const starts = [];
    /** How long each piece lasts, and for how long those before it did. @type {number[][]} */
    const pieces = [];
    let held = 0;
    for (let s = stalls.from[lane], i = phases.from[lane]; s < stalls.from[lane + 1]; s += 1) {
      if (!stallKinds[of[s]].owed) continue;
      while (i < phases.from[lane + 1] && phases.end[i] <= stalls.start[s]) i += 1;
      for (let j = i; j < phases.from[lane + 1] && phases.start[j] < stalls.end[s]; j += 1) {
        const start = Math.max(phases.start[j], stalls.start[s]);
        const lasts = Math.min(phases.end[j], stalls.end[s]) - start;
        if (kinds[phases.kind[j]].name !== "wait" || lasts <= 0) continue;
        starts.push(start);
        pieces.push([lasts, held]);
        held += lasts;
      }
    }
    return (at) => {
      const place = firstAfter(starts, at, 0, starts.length) - 1;
      return place < 0 ? 0 : pieces[place][1] + Math.min(at - starts[place], pieces[place][0]);
    };
  }

  /**
   * @param {number} lane
   * @param {Life} life
   */
  moveHandshakes(lane, life) {
    const { offsets, tables } = this.model;
    const { hello, ready_ns: readies } = this.captured.handshakes;
    const shown = this.values("handshakes");
    const [helloUp, readyUp] = ["hello_up", "ready_up"].map((name) => tables.handshakes.values(name));
    for (let i = offsets.handshakes[lane]; i < offsets.handshakes[lane + 1]; i += 1) {
      shown.hello[i] = clamped(hello[i] + life.of(helloUp[i]), life);
      shown.ready_ns[i] = Math.max(0, clamped(hello[i] + readies[i] + life.of(readyUp[i]), life) - shown.hello[i]);
    }
  }

  /**
   * @param {number} lane
   * @param {Life} life
   */
  movePackets(lane, { of }) {
    const { offsets, tables } = this.model;
    if (!tables.packets) return;
    const { at } = this.values("packets");
    const up = tables.packets.values("up");
    for (let i = offsets.packets[lane]; i < offsets.packets[lane + 1]; i += 1) at[i] = this.captured.packets.at[i] + of(up[i]);
  }

  /**
   * How much more users waited for a connection than as captured; for what served nobody they did not wait.
   * @param {number} lane
   */
  waitedMore(lane) {
    const { model } = this;
    const isLost = model.rowsOf(lane, "races").some((race) => !race.won && race.packets !== null);
    if (isLost || ["refused", "unanswered"].includes(model.fact(lane, "state"))) return 0;
    const { from, start, end, kind } = model.phases;
    const [was, stalled] = [this.phases, this.captured.stalls];
    const [turns, of] = [this.turns(lane), model.tables.phases.column("exchange")];
    let more = 0;
    for (let i = from[lane]; i < from[lane + 1]; i += 1) {
      const isTurn = turns.size > 0 && (model.kinds[kind[i]].name === "idle" || turns.has(of.get(i)));
      if (isTurn) continue;
      if (model.kinds[kind[i]].waited) more += end[i] - start[i] - (was.end[i] - was.start[i]);
      else if (model.kinds[kind[i]].name === "idle")
        more += this.owed(lane, start[i], end[i], model.stalls.start, model.stalls.end) - this.owed(lane, was.start[i], was.end[i], stalled.start, this.stallEnds);
    }
    return more;
  }

  /**
   * The numbers of the exchanges of a connection in which nobody is known to wait.
   * @param {number} lane
   */
  turns(lane) {
    const { offsets, tables } = this.model;
    const [numbers, are] = ["number", "is_turn"].map((name) => tables.exchanges.values(name));
    const turns = new Set();
    for (let i = offsets.exchanges[lane]; i < offsets.exchanges[lane + 1]; i += 1) if (are[i]) turns.add(numbers[i]);
    return turns;
  }

  /**
   * Of an idle phase: how much of it somebody had something to send.
   * @param {number} lane
   * @param {number} from
   * @param {number} to
   * @param {ArrayLike<number>} start
   * @param {ArrayLike<number>} end
   */
  owed(lane, from, to, start, end) {
    const { stalls, tables, stallKinds } = this.model;
    const kinds = tables.stalls.values("kind");
    let sum = 0;
    for (let i = stalls.from[lane]; i < stalls.from[lane + 1]; i += 1)
      if (stallKinds[kinds[i]].owed) sum += Math.max(0, Math.min(to, end[i]) - Math.max(from, start[i]));
    return sum;
  }
}
