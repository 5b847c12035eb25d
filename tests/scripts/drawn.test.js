import assert from "node:assert/strict";
import test from "node:test";

import { kindsDrawn, phasesDrawn } from "../../conchart/outputs/page/scripts/drawn.js";
import { generator } from "./random.js";

const PHASES = ["wait", "idle", "close"].map((name) => ({ name, colour: `#${name}` }));
const STALLS = [{ name: "nagle", word: "held", colour: "#held" }, { name: "rto", word: "lost", colour: null }, { name: "delayed-ack", word: "held", colour: "#held" }];

test("kinds of stall that have one word are drawn alike, without a colour as idling", () => {
  const { kinds, as, idle } = kindsDrawn(PHASES, STALLS);
  assert.deepEqual(kinds.map(({ name }) => name), ["wait", "idle", "close", "held", "lost"]);
  assert.deepEqual(as, [3, 4, 3]);
  assert.equal(idle, 1);
  assert.deepEqual(as.map((kind) => kinds[kind].colour), ["#held", "#idle", "#held"]);
});

test("where no stall is, phases stay what they are", () => {
  const phases = { from: [0, 1], start: [0], end: [9], kind: [1], inferred: [0] };
  assert.equal(phasesDrawn(phases, { from: [0, 0], start: [], end: [], kind: [] }, kindsDrawn(PHASES, STALLS), () => true), phases);
});

/**
 * What each instant is drawn as, looked at one by one.
 * @param {number} at
 * @param {any} phases
 * @param {any} stalls
 * @param {number[]} as
 */
function slowly(at, phases, stalls, as) {
  const i = phases.start.findIndex((/** @type {number} */ start, /** @type {number} */ n) => start <= at && at < phases.end[n]);
  if (phases.kind[i] !== 1) return phases.kind[i];
  const s = stalls.start.findIndex((/** @type {number} */ start, /** @type {number} */ n) => start <= at && at < stalls.end[n] && stalls.kind[n] !== 1);
  return s < 0 ? 1 : as[stalls.kind[s]];
}

test("what is owed while nothing else goes on is no idling, and nothing else changes", () => {
  for (let seed = 0; seed < 300; seed += 1) {
    const random = generator(seed);
    const drawn = kindsDrawn(PHASES, STALLS);
    /** @type {{from: number[], start: number[], end: number[], kind: number[], inferred: number[]}} */
    const phases = { from: [0], start: [], end: [], kind: [], inferred: [] };
    /** @type {{from: number[], start: number[], end: number[], kind: number[]}} */
    const stalls = { from: [0], start: [], end: [], kind: [] };
    let at = 0;
    for (let i = 0; i < 12; i += 1) {
      phases.start.push(at);
      at += 1 + random(20);
      phases.end.push(at);
      phases.kind.push(random(3));
      phases.inferred.push(0);
    }
    // Stalls of a connection do not lie over each other.
    for (let from = random(9); from < at; from += random(9)) {
      stalls.start.push(from);
      from += 1 + random(25);
      stalls.end.push(from);
      stalls.kind.push(random(3));
    }
    phases.from.push(phases.start.length);
    stalls.from.push(stalls.start.length);
    const pieces = phasesDrawn(phases, stalls, drawn, (kind) => kind !== 1);
    assert.equal(pieces.start[0], 0);
    for (let i = 0; i < pieces.start.length; i += 1) {
      assert.equal(pieces.end[i], i + 1 < pieces.start.length ? pieces.start[i + 1] : at, `${seed}: they touch`);
      for (let instant = pieces.start[i]; instant < pieces.end[i]; instant += 1) assert.equal(pieces.kind[i], slowly(instant, phases, stalls, drawn.as), `${seed}: ${instant}`);
    }
  }
});
