/* What the page works out anew is what Python worked out: times of another viewpoint, and connections that share a lane. `test_scripts.py` writes the file. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { readModel } from "../../conchart/outputs/page/scripts/model.js";
import { grow, pack } from "../../conchart/outputs/page/scripts/tree.js";

/** @typedef {import("../../conchart/outputs/page/scripts/model.js").Model} Model */

const path = process.env.CONCHART_SEEN;
const skip = path ? false : "run by test_scripts.py, which writes what is read here";
const seen = path ? JSON.parse(readFileSync(path, "utf8")) : {};

/** @param {{data: string, blocks: Record<string, string>}} packed */
function modelOf({ data, blocks }) {
  const elements = Object.entries(blocks).map(([name, text]) => ({ textContent: text, getAttribute: () => name, remove: () => {} }));
  const page = { querySelectorAll: () => elements, getElementById: () => ({ textContent: data }) };
  return readModel(/** @type {Document} */ (/** @type {unknown} */ (page)));
}

/**
 * Every time that a page shows, by connection.
 * @param {Model} model
 */
function timesOf(model) {
  const at = (/** @type {number | null} */ ns) => (ns === null ? null : String(model.calendar.startAt + BigInt(ns)));
  const times = Array.from({ length: model.count }, (_, index) => {
    const lane = model.bare(index);
    const seconds = lane.duration - lane.phases.reduce((sum, phase) => sum + phase.duration, 0);
    return [lane.stream, {
      opened: at(lane.opened), duration: lane.duration, waited: lane.waited_ns, closed: at(model.closed[index]), left: lane.phases.length ? seconds : 0, costs: lane.costs,
      phases: lane.phases.map(({ kind, start, end, inferred, exchange }) => [kind, at(start), at(end), inferred, exchange]),
      stalls: lane.stalls.map(({ kind, start, end }) => [kind.name, at(start), at(end)]),
      exchanges: lane.exchanges.map((x) => [x.number, at(x.request), x.request_ns, x.wait_ns, x.transfer_ns, x.service_ns]),
      handshakes: lane.handshakes.map((h) => [h.number, at(h.hello), h.ready_ns]),
      packets: lane.packets.map((packet) => [packet.frame, at(packet.at)]),
    }];
  });
  return Object.fromEntries(times);
}

for (const [name, packed] of Object.entries(seen)) test(`switched and made so are the same: ${name}`, { skip }, async () => {
  const model = await modelOf(packed.capture);
  const captured = timesOf(model);
  for (const end of ["client", "server"]) {
    model.seeFrom(end);
    assert.deepEqual(timesOf(model), timesOf(await modelOf(packed[end])), end);
  }
  model.seeFrom("capture");
  assert.deepEqual(timesOf(model), captured);
});

for (const [name, { capture, shared }] of Object.entries(seen)) test(`the same connections share a lane on the page and in a picture: ${name}`, { skip }, async () => {
  const model = await modelOf(capture);
  const servers = grow(model, [...model.streams.keys()], { packed: false, costly: false });
  const drawn = servers.map(({ clients }) => clients.map(({ ip, lanes }) => ({ client: ip, tracks: pack(lanes, model.opened, model.closed).map((track) => track.map((lane) => model.streams[lane])) })));
  assert.deepEqual(drawn, shared);
});
