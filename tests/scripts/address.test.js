import assert from "node:assert/strict";
import { test } from "node:test";

import { PLAIN_VIEW, readView, writeView } from "../../conchart/outputs/page/scripts/address.js";

/** @type {import("../../conchart/outputs/page/scripts/address.js").View} */
const VIEW = {
  range: [-400, 5e9], search: "path:\"/a b&c=d#e\" -\"é\"", server: "[2001:db8::7]:443", app: "http/1.1", finding: 3, chosen: 70,
  unfolded: [["s3", true], ["s3/2001:db8::7", true], ["s0", false]], seenFrom: "client", axis: "own", toScale: true, packed: false, costly: true, height: 8, tab: "requests", sort: { column: "wait", down: true },
};

test("a view comes back from its link as it was", () => assert.deepEqual(readView(`#${writeView(VIEW)}`), VIEW));

test("the first view needs no words", () => {
  assert.equal(writeView(PLAIN_VIEW), "");
  assert.deepEqual(readView(""), PLAIN_VIEW);
  assert.deepEqual(readView("#"), PLAIN_VIEW);
});

for (const [name, hash] of Object.entries({
  "a range turned round": "x=5_1", "an empty range": "x=5_5", "a range of words": "x=a_b", "a range too long": `x=0_${"9".repeat(40)}`, "half a range": "x=5",
  "a finding below nought": "finding=-1", "a finding of words": "finding=constructor", "a stream of words": "stream=1e9", "groups of another kind": "open=<img src=x>,__proto__,s1/<b>", "a group that is none": "folded=s",
  "a tab of signs": "tab=../x", "a sort of signs": "sort=a b", "an axis that is none": "axis=upside-down", "a height that is none": "height=7", "what it does not know": "colour=red", "broken percent signs": "%E0%A4%A=%", "nothing but signs": "&&==&",
})) test(`left out: ${name}`, () => assert.deepEqual(readView(`#${hash}`), PLAIN_VIEW));

test("what makes no sense spoils nothing else", () => {
  assert.deepEqual(readView("#x=no&q=login&finding=x&tab=findings&open=s1,<b>,s2"), { ...PLAIN_VIEW, search: "login", tab: "findings", unfolded: [["s1", true], ["s2", true]] });
});

test("no link makes the page keep more than it would write", () => {
  const view = readView(`#q=${"a".repeat(1e5)}&open=${Array.from({ length: 1e5 }, (_, i) => `s${i}`).join()}`);
  assert.equal(view.search.length, 2000);
  assert.equal(view.unfolded.length, 1000);
});
