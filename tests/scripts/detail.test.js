import assert from "node:assert/strict";
import test from "node:test";

import { attribute, bars, density, firstAfter } from "../../conchart/outputs/page/scripts/detail.js";
import { connections, generator } from "./random.js";

const KINDS = 5;

/**
 * How much of the stretch from `low` to `high` some stretches, which do not overlap, cover.
 * @param {{start: number, end: number}[]} stretches
 * @param {number} low
 * @param {number} high
 */
const covered = (stretches, low, high) => stretches.reduce((sum, { start, end }) => sum + Math.max(0, Math.min(end, high) - Math.max(start, low)), 0);

/**
 * Phases of some lanes that take time in a window, as objects, from their lanes' own zero.
 * @param {import("../../conchart/outputs/page/scripts/detail.js").Phases} phases
 * @param {number[]} lanes
 * @param {{x0: number, x1: number}} window
 * @param {(lane: number) => number} shift
 */
function inWindow(phases, lanes, { x0, x1 }, shift) {
  const found = [];
  for (const lane of lanes)
    for (let i = phases.from[lane]; i < phases.from[lane + 1]; i += 1) {
      const [start, end] = [Math.max(x0, phases.start[i] - shift(lane)), Math.min(x1, phases.end[i] - shift(lane))];
      if (start < end) found.push({ lane, kind: phases.kind[i], inferred: phases.inferred[i], start, end, whole: phases.end[i] - phases.start[i] });
    }
  return found;
}

/** @param {number} seed */
function scene(seed) {
  const random = generator(seed);
  const x0 = random(600);
  const made = connections(random, { lanes: 1 + random(8), kinds: KINDS, apart: true });
  const by = random(40);
  return { random, ...made, lanes: made.opened.map((_, lane) => lane), window: { x0, x1: x0 + 1 + random(700) }, shift: () => by };
}

test("bars cover what the phases cover, in order, and nothing else that is as wide as a pixel", () => {
  for (let seed = 0; seed < 500; seed += 1) {
    const { phases, lanes, window, shift, random } = scene(seed);
    const pixel = [0, 1, 3, 20, 300][random(5)];
    /** @type {{kind: number, inferred: number, start: number, end: number}[]} */
    const drawn = [];
    bars(phases, lanes, window, pixel, shift, (kind, inferred, start, end) => drawn.push({ kind, inferred, start, end }));
    const inside = inWindow(phases, lanes, window, shift);
    drawn.forEach(({ start }, i) => assert.ok(i === 0 || start >= drawn[i - 1].end, `${seed}: bars overlap`));
    for (const { start, end } of inside) assert.equal(covered(drawn, start, end), end - start, `${seed}: a phase is not drawn`);
    for (const bar of drawn) {
      if (bar.end - bar.start < pixel) continue;
      const [low, high] = [Math.max(bar.start, window.x0), Math.min(bar.end, window.x1)];
      assert.equal(covered(inside, low, high), high - low, `${seed}: a bar where nothing is`);
    }
    for (const { kind, inferred, start, end } of inside.filter(({ whole }) => whole >= pixel))
      assert.ok(drawn.some((bar) => bar.kind === kind && bar.inferred === inferred && bar.start === start && bar.end === end), `${seed}: a wide phase has no bar of its own`);
  }
});

test("phases too narrow to be seen are drawn in the colour that has most of their time", () => {
  const phases = { from: [0, 4], start: [0, 10, 40, 55], end: [10, 40, 55, 60], kind: [1, 2, 1, 3], inferred: [1, 1, 1, 1] };
  /** @type {number[][]} */
  const drawn = [];
  bars(phases, [0], { x0: 0, x1: 100 }, 100, () => 0, (...bar) => drawn.push(bar));
  assert.deepEqual(drawn, [[2, 0, 0, 60]]);
});

test("the sums of a density are the time that was spent", () => {
  for (let seed = 0; seed < 500; seed += 1) {
    const { phases, lanes, window, shift, random } = scene(seed);
    const parts = 1 + random(90);
    const step = (window.x1 - window.x0) / parts;
    const levels = density(phases, lanes, window, parts, KINDS, shift);
    const inside = inWindow(phases, lanes, window, shift);
    levels.forEach((level, kind) => {
      assert.equal(level.length, parts);
      const spent = inside.reduce((sum, phase) => sum + (phase.kind === kind ? phase.end - phase.start : 0), 0);
      assert.ok(Math.abs(level.reduce((sum, share) => sum + share, 0) * step - spent) < 1e-6, `${seed}: kind ${kind}`);
      for (let i = 0; i < parts; i += 1) {
        const [low, high] = [window.x0 + i * step, window.x0 + (i + 1) * step];
        const here = covered(inside.filter((phase) => phase.kind === kind), low, high);
        assert.ok(Math.abs(level[i] * step - here) < 1e-6, `${seed}: part ${i} of kind ${kind}`);
      }
    });
  }
});

test("time is attributed as counting phase by phase does", () => {
  for (let seed = 0; seed < 500; seed += 1) {
    const { phases, lanes, window, shift } = scene(seed);
    const inside = inWindow(phases, lanes, window, shift);
    const { sums, connections: touched } = attribute(phases, lanes, window, KINDS, shift);
    const expected = Array.from({ length: KINDS }, (_, kind) => inside.reduce((sum, phase) => sum + (phase.kind === kind ? phase.end - phase.start : 0), 0));
    assert.deepEqual([...sums], expected, `${seed}`);
    assert.ok(touched >= new Set(inside.map(({ lane }) => lane)).size, `${seed}: a connection is not counted`);
    assert.ok(touched <= lanes.length);
  }
});

test("the first that ends after an instant is found", () => {
  const ends = [2, 4, 4, 9];
  assert.deepEqual([1, 2, 4, 9].map((at) => firstAfter(ends, at, 0, ends.length)), [0, 1, 3, 4]);
  assert.equal(firstAfter(ends, 1, 2, 4), 2);
});
