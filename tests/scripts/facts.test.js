/* Python and the page write the same texts. `test_scripts.py` writes the file: run alone, there is nothing to read. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { factText } from "../../conchart/outputs/page/scripts/format.js";

/** @typedef {import("../../conchart/outputs/page/scripts/format.js").Fact} Fact */

const path = process.env.CONCHART_TEXTS;

test("facts are written as in the rest of the program", { skip: path ? false : "run by test_scripts.py, which writes what is read here" }, () => {
  /** @type {[Fact, Record<string, any>, string][]} */
  const cases = JSON.parse(readFileSync(path || "", "utf8"));
  for (const [fact, row, text] of cases) assert.equal(factText(fact, row).replaceAll("\u00a0", " "), text, JSON.stringify(row));
  const names = (/** @type {typeof cases} */ of) => [...new Set(of.map(([fact]) => fact.join(" ")))];
  assert.deepEqual(names(cases.filter(([, , text]) => text)).sort(), names(cases).sort(), "each fact is that of some row");
});

test("a text of the capture is no template", () => {
  assert.equal(factText(["", ["{a}{b}"], ""], { a: "{b}$&", b: "c" }), "{b}$&c");
});
