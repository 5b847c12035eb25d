/* Which rows the swimlanes have: servers, their clients, and lanes. Connections of one client and server that do not
   overlap share a lane; what is too much to be read at once is folded, and sums up. */

/** @typedef {import("./model.js").Model} Model */
/**
 * @typedef {{ip: string, lanes: number[], tracks: number[][]}} Client
 * @typedef {{group: number, lanes: number[], clients: Client[], tracks: number[][]}} Server
 * @typedef {{kind: "server" | "client" | "track", key: string, group: number, lanes: number[], top: number, height: number, ip?: string, open?: boolean, strip?: number, most?: number, size?: number}} Row
 */

export const HEADING = 26;
const CLIENT = 22;
/* Height of a folded group: its heading, and below it how many connections are in which phase. */
const STRIP = 44;
const GAP = 8;
/* A page with fewer connections gives each a lane of its own: their steps can be read. */
const FEW = 60;
/* Rows that are unfolded by themselves. */
const MOST_ROWS = 400;
/* A server with no more lanes than this needs no headings for its clients. */
const FEW_TRACKS = 40;

/**
 * Lay connections into as few lanes as they need: each goes to the uppermost that is free. What ends where another one
 * begins does not share with it. Pictures do the same (conchart/outputs/packing.py); a test compares the two.
 * @param {number[]} lanes
 * @param {ArrayLike<number>} opened
 * @param {ArrayLike<number>} closed
 * @returns {number[][]}
 */
export function pack(lanes, opened, closed) {
  const inOrder = [...lanes].sort((a, b) => opened[a] - opened[b] || a - b);
  /** @type {number[][]} */
  const tracks = [];
  const busy = new Heap((/** @type {number} */ track) => closed[tracks[track][tracks[track].length - 1]]);
  const free = new Heap((/** @type {number} */ track) => track);
  for (const lane of inOrder) {
    while (busy.size && busy.key(busy.first) < opened[lane]) free.push(busy.pop());
    const track = free.size ? free.pop() : tracks.push([]) - 1;
    tracks[track].push(lane);
    busy.push(track);
  }
  return tracks;
}

/** Numbers, the one with the least key first. A key must not change while its number is inside. */
class Heap {
  /** @param {(item: number) => number} key */
  constructor(key) {
    this.key = key;
    /** @type {number[]} */
    this.items = [];
  }

  get size() {
    return this.items.length;
  }

  get first() {
    return this.items[0];
  }

  /** @param {number} item */
  push(item) {
    const { items, key } = this;
    let at = items.push(item) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (key(items[above]) <= key(item)) break;
      items[at] = items[above];
      at = above;
    }
    items[at] = item;
  }

  pop() {
    const { items, key } = this;
    const [first] = items;
    const last = /** @type {number} */ (items.pop());
    if (!items.length) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= items.length) break;
      if (below + 1 < items.length && key(items[below + 1]) < key(items[below])) below += 1;
      if (key(items[below]) >= key(last)) break;
      items[at] = items[below];
      at = below;
    }
    items[at] = last;
    return first;
  }
}

/**
 * Group connections, which come in the order of their servers and of time, by server and client.
 * @param {Model} model
 * @param {ArrayLike<number>} lanes
 * @param {{packed: boolean, costly: boolean}} how whether connections share lanes; whether those whose users waited the
 *   longest come first, and not those that were opened first
 * @returns {Server[]}
 */
export function grow(model, lanes, { packed, costly }) {
  /** @type {Server[]} */
  const servers = [];
  const address = model.tables.lanes.column("client_ip");
  /** @type {Map<number, Client>} */
  let clients = new Map();
  for (let i = 0; i < lanes.length; i += 1) {
    const lane = lanes[i];
    const group = model.group[lane];
    let server = servers[servers.length - 1];
    if (!server || server.group !== group) {
      clients = new Map();
      server = { group, lanes: [], clients: [], tracks: [] };
      servers.push(server);
    }
    server.lanes.push(lane);
    const code = address.values[lane];
    let client = clients.get(code);
    if (!client) {
      client = { ip: address.get(lane), lanes: [], tracks: [] };
      clients.set(code, client);
      server.clients.push(client);
    }
    client.lanes.push(lane);
  }
  const share = packed && lanes.length > FEW;
  const inOrder = costly ? byCost(model) : byTime(model);
  for (const server of servers) {
    for (const client of server.clients) client.tracks = inOrder(share ? pack(client.lanes, model.opened, model.closed) : client.lanes.map((lane) => [lane]), (track) => track);
    server.clients = inOrder(server.clients, (client) => client.lanes);
    server.tracks = inOrder(server.clients.flatMap(({ tracks }) => tracks), (track) => track);
  }
  return servers;
}

/**
 * What sorts things that have lanes by a number of each, the least first.
 * @param {(lanes: number[]) => number} key
 */
function sorter(key) {
  return /** @type {<T>(things: T[], lanesOf: (thing: T) => number[]) => T[]} */ ((things, lanesOf) => things.map((thing) => ({ thing, at: key(lanesOf(thing)) })).sort((a, b) => a.at - b.at).map(({ thing }) => thing));
}

/** @param {Model} model */
const byTime = ({ opened }) => sorter((lanes) => opened[lanes[0]]);

/** @param {Model} model */
function byCost({ tables }) {
  const waited = tables.lanes.values("waited_ns");
  return sorter((lanes) => -lanes.reduce((sum, lane) => sum + waited[lane], 0));
}

/**
 * The rows of a tree from top to bottom, with their places.
 * @param {Server[]} servers
 * @param {Map<string, boolean>} unfolded what somebody has unfolded or folded
 * @param {number} laneHeight
 * @returns {{rows: Row[], height: number}}
 */
export function layRows(servers, unfolded, laneHeight) {
  /** @type {Row[]} */
  const rows = [];
  let top = 0;
  let room = MOST_ROWS;
  /** @param {Omit<Row, "top">} row */
  const add = (row) => {
    rows.push({ ...row, top });
    top += row.height;
  };
  for (const { group, lanes, clients, tracks } of servers) {
    const key = `s${group}`;
    const grouped = clients.length > 1 && tracks.length > FEW_TRACKS;
    const needed = grouped ? clients.length : tracks.length;
    const open = unfolded.get(key) ?? (servers.length === 1 || needed <= room);
    if (rows.length) top += GAP;
    add({ kind: "server", key, group, lanes, open, height: HEADING + (open ? 0 : STRIP), strip: open ? 0 : STRIP });
    if (!open) continue;
    room -= needed;
    const addTracks = (/** @type {number[][]} */ shown, /** @type {string} */ name) => shown.forEach((track, i) => add({ kind: "track", key: `${name}/${i}`, group, lanes: track, height: laneHeight }));
    if (!grouped) {
      addTracks(tracks, key);
      continue;
    }
    for (const client of clients) {
      const name = `${key}/${client.ip}`;
      const shown = unfolded.get(name) ?? client.tracks.length <= room;
      add({ kind: "client", key: name, group, ip: client.ip, lanes: client.lanes, open: shown, height: CLIENT, strip: shown ? 0 : CLIENT });
      if (!shown) continue;
      room -= client.tracks.length;
      addTracks(client.tracks, name);
    }
  }
  return { rows, height: top };
}

/**
 * The row at a vertical position, or undefined.
 * @template {{top: number, height: number}} R
 * @param {R[]} rows
 * @param {number} y
 */
export function rowAt(rows, y) {
  let low = 0;
  let high = rows.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (y < rows[middle].top) high = middle - 1;
    else if (y >= rows[middle].top + rows[middle].height) low = middle + 1;
    else return rows[middle];
  }
  return undefined;
}
