/* What Python packed is what the page reads. `test_scripts.py` writes the file: run alone, there is nothing to read. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { readBlocks } from "../../conchart/outputs/page/scripts/decode.js";

const path = process.env.CONCHART_PACKED;

/** @returns {string | false} why there is nothing to test with */
function missing() {
  if (!path) return "run by test_scripts.py, which writes what is read here";
  try {
    new DecompressionStream("deflate-raw");
    return false;
  } catch {
    return `Node ${process.version} knows no deflate-raw`;
  }
}

/**
 * As much of a page as its blocks need.
 * @param {{data: string, blocks: Record<string, string>}} packed
 */
function pageOf({ data, blocks }) {
  const removed = new Set();
  const elements = Object.entries(blocks).map(([name, text]) => ({ textContent: text, getAttribute: () => name, remove: () => removed.add(name) }));
  const page = { querySelectorAll: () => elements, getElementById: () => ({ textContent: data }) };
  return { page: /** @type {Document} */ (/** @type {unknown} */ (page)), removed };
}

test("values travel", { skip: missing() }, async () => {
  const packed = JSON.parse(readFileSync(String(path), "utf8"));
  const { page, removed } = pageOf(packed);
  const { data, tables } = await readBlocks(page);
  assert.equal(data.title, packed.title);
  assert.deepEqual([...removed], Object.keys(packed.expected));
  for (const [name, expected] of Object.entries(packed.expected)) {
    const table = tables[name];
    assert.equal(table.length, expected.length);
    assert.deepEqual(Array.from({ length: table.length }, (_, row) => table.row(row)), expected, name);
  }
});

test("rows of a lane are where its offsets say", { skip: missing() }, async () => {
  const packed = JSON.parse(readFileSync(String(path), "utf8"));
  const { tables } = await readBlocks(pageOf(packed).page);
  /** @type {number[]} */
  const lanes = packed.expected.laned.map((/** @type {{lane: number}} */ row) => row.lane);
  const count = Math.max(...lanes) + 3;
  const offsets = tables.laned.offsets(count);
  assert.equal(offsets.length, count + 1);
  for (let lane = 0; lane < count; lane += 1) {
    const rows = lanes.flatMap((of, row) => (of === lane ? [row] : []));
    assert.deepEqual(Array.from({ length: offsets[lane + 1] - offsets[lane] }, (_, i) => offsets[lane] + i), rows);
  }
});

test("a column that is not there is said to be missing", { skip: missing() }, async () => {
  const { tables } = await readBlocks(pageOf(JSON.parse(readFileSync(String(path), "utf8"))).page);
  assert.throws(() => tables.laned.column("no such"), /no column no such/);
});
