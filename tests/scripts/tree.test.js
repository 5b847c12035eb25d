import assert from "node:assert/strict";
import test from "node:test";

import { grow, layRows, pack, rowAt } from "../../conchart/outputs/page/scripts/tree.js";
import { generator } from "./random.js";
import { story } from "./story.js";

/**
 * @param {(below: number) => number} random
 * @param {number} least of their durations
 */
function intervals(random, least) {
  const opened = Array.from({ length: 1 + random(60) }, () => random(200));
  return { opened, closed: opened.map((at) => at + least + random(random(3) ? 10 : 150)), lanes: opened.map((_, lane) => lane) };
}

test("connections that share a lane do not overlap, and none is lost", () => {
  for (let seed = 0; seed < 500; seed += 1) {
    const { opened, closed, lanes } = intervals(generator(seed), 0);
    const tracks = pack(lanes, opened, closed);
    assert.deepEqual(tracks.flat().sort((a, b) => a - b), lanes, `${seed}`);
    for (const track of tracks) track.forEach((lane, i) => assert.ok(i === 0 || closed[track[i - 1]] < opened[lane], `${seed}: ${track}`));
  }
});

test("there are no more lanes than connections that are open at once", () => {
  for (let seed = 0; seed < 500; seed += 1) {
    const { opened, closed, lanes } = intervals(generator(seed), 1);
    const most = Math.max(...opened.map((at) => lanes.filter((lane) => opened[lane] <= at && closed[lane] >= at).length));
    assert.equal(pack(lanes, opened, closed).length, most, `${seed}`);
  }
});

/** @param {(below: number) => number} random */
function tree(random) {
  let next = 0;
  return Array.from({ length: 1 + random(6) }, (_, group) => {
    const clients = Array.from({ length: 1 + random(5) }, (_, n) => {
      const tracks = Array.from({ length: 1 + random(random(4) ? 12 : 300) }, () => Array.from({ length: 1 + random(3) }, () => next++));
      return { ip: `10.0.${group}.${n}`, lanes: tracks.flat(), tracks };
    });
    return { group, clients, lanes: clients.flatMap(({ lanes }) => lanes), tracks: clients.flatMap(({ tracks }) => tracks) };
  });
}

test("rows touch, but for the gaps above servers, and show each connection once", () => {
  for (let seed = 0; seed < 200; seed += 1) {
    const random = generator(seed);
    const servers = tree(random);
    /** @type {Map<string, boolean>} */
    const unfolded = new Map();
    for (const { group, clients } of servers) {
      if (random(3) === 0) unfolded.set(`s${group}`, Boolean(random(2)));
      for (const { ip } of clients) if (random(3) === 0) unfolded.set(`s${group}/${ip}`, Boolean(random(2)));
    }
    const { rows, height } = layRows(servers, unfolded, 8);
    let bottom = 0;
    rows.forEach((row, i) => {
      const gap = row.top - bottom;
      assert.ok(i && row.kind === "server" ? gap > 0 : gap === 0, `${seed}: row ${i} is ${gap} off`);
      bottom = row.top + row.height;
    });
    assert.equal(height, bottom);
    const shown = rows.filter((row) => row.kind === "track" || row.open === false).flatMap(({ lanes }) => lanes);
    assert.deepEqual(shown.sort((a, b) => a - b), servers.flatMap(({ lanes }) => lanes), `${seed}`);
    assert.equal(new Set(rows.map(({ key }) => key)).size, rows.length);
    for (const row of rows) if (unfolded.has(row.key)) assert.equal(row.open, unfolded.get(row.key));
  }
});

test("what is too much to be read is folded", () => {
  const random = generator(7);
  const big = () => ({ ip: `10.0.0.${random(255)}`, lanes: [], tracks: Array.from({ length: 300 }, (_, lane) => [lane]) });
  const servers = [0, 1].map((group) => {
    const client = big();
    return { group, lanes: [], clients: [client], tracks: client.tracks };
  });
  const { rows } = layRows(servers, new Map(), 8);
  assert.deepEqual(rows.filter(({ kind }) => kind === "server").map(({ open }) => open), [true, false]);
});

test("lanes come as they were opened, or the longest wait first, whichever client opened them", () => {
  const model = story();
  const lanes = [...model.streams.keys()].filter((lane) => model.group[lane] === 0);
  const shown = (/** @type {boolean} */ costly) => grow(model, lanes, { packed: true, costly })[0].tracks.flat();
  const by = (/** @type {ArrayLike<number>} */ values, /** @type {number} */ sign) => [...lanes].sort((a, b) => sign * (values[a] - values[b]));
  model.tables.lanes.column("waited_ns").values.set([5, 90, 0, 40]);
  assert.deepEqual(shown(false), by(model.opened, 1));
  assert.deepEqual(shown(true), by(model.tables.lanes.values("waited_ns"), -1));
  assert.notDeepEqual(shown(true), shown(false));
});

test("the row at a place is the one that covers it", () => {
  for (let seed = 0; seed < 50; seed += 1) {
    const random = generator(seed);
    const { rows, height } = layRows(tree(random), new Map(), 8);
    for (let i = 0; i < 100; i += 1) {
      const y = random(height + 40) - 20;
      assert.equal(rowAt(rows, y), rows.find(({ top, height: high }) => y >= top && y < top + high), `${seed}: ${y}`);
    }
  }
});
