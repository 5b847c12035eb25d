import assert from "node:assert/strict";
import { test } from "node:test";

import { Calendar, clockTime, timeAxis } from "../../conchart/outputs/page/scripts/axis.js";

const S = 1_000_000_000;
const start = BigInt(Date.UTC(2006, 3, 25, 21, 20, 0)) * 1_000_000n;
const later = BigInt(Date.UTC(2025, 10, 13, 2, 13, 20)) * 1_000_000n;
/* Ten seconds of 2006, a mark, and from the eleventh on those of 2025. */
const calendar = new Calendar(start, [{ at: 10.5 * S, ns: later - start - BigInt(11 * S), says: "20 years left out" }]);

test("dates after a silence that is left out are those of the file", () => {
  assert.equal(calendar.startFor(0), start);
  const found = clockTime(11 * S, calendar.startFor(11 * S), "utc", 0);
  assert.deepEqual([found.day, found.time], ["2025-11-13", "02:13:20"]);
});

test("marks are round on both sides of it", () => {
  const { ticktext, title } = timeAxis(0, 20 * S, 1200, "utc", calendar);
  assert.equal(title, "2006-04-25, UTC");
  assert.ok(ticktext.includes("21:20:10") && ticktext.includes("02:13:22"), ticktext.join());
  assert.ok(ticktext.every((text) => /:\d[02468]$/.test(text)), ticktext.join());
});

test("an axis without silences is one piece", () => {
  assert.deepEqual(new Calendar(start, []).pieces(3, 9), [[3, 9]]);
  assert.deepEqual(calendar.pieces(0, 20 * S), [[0, 10.5 * S], [10.5 * S, 20 * S]]);
});
