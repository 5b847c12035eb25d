import assert from "node:assert/strict";
import test from "node:test";

import { Column } from "../../conchart/outputs/page/scripts/decode.js";
import { LeftOut } from "../../conchart/outputs/page/scripts/left.js";
import { addLeft } from "../../conchart/outputs/page/scripts/overview.js";
import { sample } from "../../conchart/outputs/page/scripts/statistics.js";

/** @param {Record<string, Column>} columns */
const table = (columns) => ({ length: Object.values(columns)[0].values.length, column: (/** @type {string} */ name) => columns[name], values: (/** @type {string} */ name) => columns[name].values });

/** @param {number[]} values */
const column = (values, valid = /** @type {Uint8Array | null} */ (null), texts = /** @type {string[] | null} */ (null)) => new Column("", Float64Array.from(values), valid, texts);

/** Two lanes, and beside them: of kind 1, two connections in the first part and one in the last; waits of two servers. */
function model() {
  return /** @type {any} */ ({
    count: 2, span: 500_000, viewpoint: "capture", kinds: [{ name: "syn" }, { name: "wait" }],
    tables: {
      left_levels: table({ kind: column([1, 1]), part: column([0, 499]), ns: column([2000, 1000]) }),
      left_times: table({
        measure: column([0, 0, 0, 1], null, ["wait", "connection"]), group: column([3, 3, 0, 3], Uint8Array.of(1, 1, 0, 1)), step: column([0, 601, 601, 701]), count: column([1, 2, 4, 3]),
      }),
    },
  });
}

test("what is not drawn counts as often as it was counted, to about 1 %", () => {
  const left = new LeftOut(model());
  const waits = left.durations("wait");
  assert.deepEqual([...waits.keys()], [3, null]);
  assert.equal(waits.get(3)?.length, 3);
  assert.equal(waits.get(3)?.[0], 0);
  for (const ns of [...(waits.get(3) ?? []).slice(1), ...(waits.get(null) ?? [])]) assert.ok(Math.abs(ns - 1e6) / 1e6 < 0.013, String(ns));
  assert.equal(left.durations("handshake").size, 0);
  const measure = { key: "wait", title: "", from: [0, 1, 2], value: (/** @type {number} */ row) => [5, 1e9][row] };
  const sorted = sample(measure, [0, 1], [...waits.values()]);
  assert.equal(sorted.length, 2 + 7);
  assert.deepEqual([sorted[0], sorted[1], sorted[8]], [0, 5, 1e9]);
});

test("what is not drawn counts where every lane is shown, as the capture saw it", () => {
  const captured = model();
  const left = new LeftOut(captured);
  assert.ok(left.counts([0, 1]));
  assert.ok(!left.counts([1]));
  captured.viewpoint = "client";
  assert.ok(!left.counts([0, 1]));
});

test("the strip above the lanes has what is not drawn at its place", () => {
  const left = new LeftOut(model());
  const counts = [new Float64Array(10), new Float64Array(10).fill(1)];
  addLeft(counts, left, [true, true], { x0: -50_000, x1: 450_000 });
  assert.deepEqual([...counts[1]], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "the middle of a column is looked at");
  addLeft(counts, left, [true, true], { x0: 0, x1: 10_000 });
  assert.deepEqual([...counts[1]], [3, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
  addLeft(counts, left, [true, false], { x0: 490_000, x1: 500_000 });
  assert.deepEqual([...counts[1]], [3, 1, 1, 1, 1, 1, 1, 1, 1, 1], "a kind that nobody waits for is not shown");
  addLeft(counts, left, [true, true], { x0: 490_000, x1: 500_000 });
  assert.equal(counts[1][9], 2);
});
