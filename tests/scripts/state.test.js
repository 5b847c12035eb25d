import assert from "node:assert/strict";
import { test } from "node:test";

import { PLAIN_VIEW } from "../../conchart/outputs/page/scripts/address.js";
import { State, findingAfter, foldGroups, goBack, narrow, possible, seeFromNext, tellTimes } from "../../conchart/outputs/page/scripts/state.js";

/** @typedef {import("../../conchart/outputs/page/scripts/state.js").Shown} Shown */

/** @param {Partial<Shown>} [part] @returns {Shown} */
const shown = (part) => ({ ...PLAIN_VIEW, explanations: true, ...part });

test("a change tells once what is different, when it is there", () => {
  /** @type {[string[], Shown][]} */
  const changes = [];
  const state = new State((changed) => changes.push([[...changed].sort(), state.shown]));
  state.change({ search: "login", packed: false, costly: false });
  state.change({ search: "login" });
  state.change({});
  assert.deepEqual(changes, [[["packed", "search"], shown({ search: "login", packed: false })]]);
});

test("a change within a change is told by itself", () => {
  /** @type {string[][]} */
  const changes = [];
  const state = new State((changed) => {
    changes.push([...changed]);
    if (changed.has("chosen")) state.change({ unfolded: [["s1", true]] });
  });
  state.change({ chosen: 7 });
  assert.deepEqual(changes, [["chosen"], ["unfolded"]]);
  assert.deepEqual(state.shown, shown({ chosen: 7, unfolded: [["s1", true]] }));
});

test("groups are folded and unfolded, each once", () => {
  const view = shown({ unfolded: [["s0", false], ["s1", true]] });
  assert.deepEqual(foldGroups(view, ["s1"], false), { unfolded: [["s0", false], ["s1", false]] });
  assert.deepEqual(foldGroups(view, ["s0", "s0/::1"], true), { unfolded: [["s0", true], ["s1", true], ["s0/::1", true]] });
  assert.deepEqual(view.unfolded, [["s0", false], ["s1", true]]);
});

test("a range is kept on axes of the capture alone", () => {
  const view = shown({ range: [5, 9] });
  assert.deepEqual({ ...view, ...tellTimes(view, "utc") }, shown({ axis: "utc", range: [5, 9] }));
  assert.deepEqual({ ...view, ...tellTimes(view, "own") }, shown({ axis: "own" }));
  assert.deepEqual(tellTimes(shown({ axis: "own", range: [5, 9] }), "span"), { axis: "span", range: null });
});

test("a finding shows all of its connections; without it, the filters stay", () => {
  const view = shown({ search: "login", server: "10.0.0.9:443", app: "tls", chosen: 3 });
  assert.deepEqual({ ...view, ...narrow(view, 2) }, shown({ finding: 2, chosen: 3 }));
  assert.deepEqual({ ...view, ...narrow(view, null) }, view);
});

test("findings go round in both directions, from the first or the last", () => {
  const numbers = [4, 0, 2];
  const walk = (/** @type {number | null} */ finding, /** @type {number} */ by) => findingAfter(shown({ finding }), numbers, by);
  assert.deepEqual([walk(null, 1), walk(null, -1), walk(4, 1), walk(2, 1), walk(4, -1)], [4, 2, 0, 4, 2]);
  assert.equal(walk(99, 1), 4); // a consequence is not among those of the panel
  assert.equal(findingAfter(shown(), [], 1), null);
});

test("viewpoints go round", () => {
  let view = shown();
  const seen = [1, 2, 3].map(() => (view = { ...view, ...seeFromNext(view) }).seenFrom);
  assert.deepEqual(seen, ["server", "client", "capture"]);
});

test("back is one step: the search where somebody is, the details, the finding", () => {
  let view = shown({ search: "login", chosen: 3, finding: 1 });
  const steps = [true, false, false, false].map((searching) => {
    const part = goBack(view, searching);
    view = { ...view, ...part };
    return part;
  });
  assert.deepEqual(steps, [{ search: "" }, { chosen: null }, { finding: null }, {}]);
  assert.deepEqual(goBack(shown({ search: "login", chosen: 3 }), false), { chosen: null });
});

test("of a link to another page, what is not here is left out", () => {
  const here = { servers: ["10.0.0.9:443"], apps: ["tls"], findings: new Set([0]), streams: new Set([7]), viewpoints: ["capture", "server"] };
  /** @type {import("../../conchart/outputs/page/scripts/address.js").View} */
  const view = { ...PLAIN_VIEW, server: "10.0.0.9:443", app: "tls", finding: 0, chosen: 7, seenFrom: "server", search: "x", range: [1, 2] };
  assert.deepEqual(possible(view, here), view);
  const other = { ...view, server: "other", app: "other", finding: 1, chosen: 8, seenFrom: "client" };
  assert.deepEqual(possible(other, here), { ...view, server: "", app: "", finding: null, chosen: null, seenFrom: "capture" });
});
