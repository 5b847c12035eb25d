import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { brief, bytes, clip, exact, grouped, inMs, plain, plural, unitFor } from "../../conchart/outputs/page/scripts/format.js";
import { generator } from "./random.js";

const DIGITS = new Map([["s", 9], ["ms", 6], ["µs", 3], ["ns", 0]]);

test("exact times lose no digit", () => {
  const random = generator(1);
  for (let i = 0; i < 2000; i += 1) {
    const ns = (random(2) ? 1 : -1) * Math.floor(random(2 ** 31) ** (random(2) ? 1.7 : 1) / 10 ** random(9));
    const [number, unit] = exact(ns).replaceAll("\u2009", "").replace("−", "-").split("\u00a0");
    const digits = DIGITS.get(unit);
    assert.notEqual(digits, undefined, unit);
    assert.equal((number.split(".")[1] ?? "").length, digits);
    assert.equal(BigInt(number.replace(".", "")), BigInt(ns));
  }
});

test("a unit is the largest that the time fills", () => {
  assert.deepEqual([0, 999, 1000, 999_999, 1e6, -1e9].map((ns) => unitFor(ns).name), ["ns", "ns", "µs", "µs", "ms", "s"]);
});

test("brief times are written as in the rest of the program", () => {
  /** @type {[number, string][]} */
  const durations = JSON.parse(readFileSync(new URL("durations.json", import.meta.url), "utf8"));
  assert.deepEqual(durations.map(([ns]) => brief(ns).replaceAll("\u00a0", " ")), durations.map(([, text]) => text));
});

test("milliseconds of a column have three decimals", () => {
  assert.deepEqual([0, 1_234_567_890, 499].map(inMs), ["0.000", "1\u2009234.568", "0.000"]);
});

test("thousands stand apart", () => {
  assert.deepEqual([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1\u2009000", "1\u2009234\u2009567"]);
  assert.deepEqual([1, 0, 1500].map((n) => plural(n, "packet")), ["1 packet", "0 packets", "1\u2009500 packets"]);
});

test("bytes have the unit that suits, and what is not known says so", () => {
  assert.deepEqual([null, 0, 999, 1000, 48_300, 2_500_000, 7e9].map(bytes), ["?", "0\u00a0B", "999\u00a0B", "1.00\u00a0kB", "48.3\u00a0kB", "2.50\u00a0MB", "7.00\u00a0GB"]);
});

test("what Plotly draws has neither tags nor entities", () => {
  assert.equal(plain('<a href="x">&amp;</a>'), '&lt;a href="x"&gt;&amp;amp;&lt;/a&gt;');
});

test("clipped texts are as long as there is room", () => {
  assert.equal(clip("connection", 10), "connection");
  assert.equal(clip("connections", 10), "connectio…");
});
