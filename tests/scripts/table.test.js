import assert from "node:assert/strict";
import { test } from "node:test";

import { ranks, sortRows } from "../../conchart/outputs/page/scripts/listings.js";

test("rows sort by their keys, equal ones stay as they came", () => {
  assert.deepEqual([...sortRows([0, 1, 2, 3], [3, 1, 2, 1], false)], [1, 3, 2, 0]);
  assert.deepEqual([...sortRows([3, 2, 1, 0], [3, 1, 2, 1], true)], [0, 2, 3, 1]);
});

test("what is not known comes last, either way", () => {
  assert.deepEqual([...sortRows([0, 1, 2, 3], [NaN, 1, NaN, 0], false)], [3, 1, 0, 2]);
  assert.deepEqual([...sortRows([0, 1, 2, 3], [NaN, 1, NaN, 0], true)], [1, 3, 0, 2]);
});

test("texts stand in the order of people: numbers in them count", () => {
  assert.deepEqual([...ranks(["10.0.0.10", "10.0.0.9", "10.0.0.10", null, ""])], [1, 0, 1, NaN, NaN]);
});

test("many rows sort as Array.sort would", () => {
  const keys = Float64Array.from({ length: 5000 }, (_, i) => (i * 7919) % 613);
  const wanted = [...keys.keys()].sort((a, b) => keys[b] - keys[a] || a - b);
  assert.deepEqual([...sortRows(keys.keys(), keys, true)], wanted);
});
