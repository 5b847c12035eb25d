import assert from "node:assert/strict";
import test from "node:test";

import { nanoseconds, exact, share, shortly } from "../../conchart/outputs/page/scripts/format.js";
import { account, countPer, oneEach } from "../../conchart/outputs/page/scripts/range.js";
import { kindsDrawn, phasesDrawn } from "../../conchart/outputs/page/scripts/drawn.js";
import { found, inOrder, nearestRank, rankOf } from "../../conchart/outputs/page/scripts/ranks.js";
import { bucketsOf, overTime, percentilePer } from "../../conchart/outputs/page/scripts/series.js";
import { decades, distributionSpan, histogram, measuresOf, sample, stepsDrawn } from "../../conchart/outputs/page/scripts/statistics.js";
import { connections, generator } from "./random.js";

const KINDS = ["syn", "tls", "wait", "idle"].map((name) => ({ name, title: name, colour: name, waited: name !== "idle" }));
const STALLS = ["held", "lost"].map((word) => ({ name: word, word }));

/** @param {number[]} values */
const column = (values, valid = /** @type {Uint8Array | null} */ (null)) => ({ values, valid });

/** @param {Record<string, {values: number[], valid: Uint8Array | null}>} columns */
const table = (columns) => ({ length: Object.values(columns)[0].values.length, column: (/** @type {string} */ name) => columns[name], values: (/** @type {string} */ name) => columns[name].values });

/**
 * Connections of a few servers, with a request at the beginning of some phases; a model as far as it is looked at.
 * @param {number} seed
 */
function scene(seed) {
  const random = generator(seed);
  const { phases, opened, closed } = connections(random, { lanes: 1 + random(12), kinds: KINDS.length });
  const count = opened.length;
  const lanes = opened.map((_, lane) => lane);
  const offsets = [0];
  /** @type {number[][]} */
  const [lane, at, wait, present] = [[], [], [], []];
  for (const one of lanes) {
    for (let i = phases.from[one]; i < phases.from[one + 1]; i += 1) {
      if (random(2)) continue;
      lane.push(one);
      at.push(phases.start[i]);
      wait.push(random(50));
      present.push(Number(random(5) > 0));
    }
    offsets.push(at.length);
  }
  const valid = Uint8Array.from(present);
  const stalls = { from: oneEach(count), start: opened.map((from) => from + 3), end: opened.map((from) => from + 3 + random(60)), kind: lanes.map((one) => one % 2) };
  const drawnKinds = kindsDrawn(KINDS, STALLS);
  const model = /** @type {any} */ ({
    kinds: KINDS, count, opened: Float64Array.from(opened), closed: Float64Array.from(closed), phases, stalls, drawnKinds, drawn: phasesDrawn(phases, stalls, drawnKinds, () => true), group: lanes.map((one) => one >> 2),
    costs: KINDS.map(() => [1]), offsets: { exchanges: offsets, handshakes: oneEach(count), phases: phases.from },
    tables: {
      lanes: table({ duration: column(lanes.map((one) => closed[one] - opened[one])) }), stalls: table({ kind: column(lanes.map((one) => one % 2)) }),
      handshakes: table({ hello: column(opened), ready_ns: column(opened) }),
      exchanges: table({ request: column(at), wait_ns: column(wait, valid), request_ns: column(wait), transfer_ns: column(wait) }),
    },
  });
  const by = random(40);
  return { random, model, lanes: lanes.filter(() => random(4)), shift: () => by, requests: { lane, at, wait, present } };
}

test("a percentile is the least value that no fewer than so many per cent do not exceed", () => {
  const random = generator(1);
  for (let length = 1; length < 300; length += 1) {
    const values = Float64Array.from({ length }, () => random(200)).sort();
    for (const percent of [1, 50, 95, 99, 100]) {
      const value = nearestRank(values, percent);
      const upTo = (/** @type {number} */ limit) => values.filter((one) => one <= limit).length * 100;
      assert.ok(upTo(value) >= percent * length);
      assert.ok(upTo(value - 1) < percent * length);
    }
  }
});

test("durations are sorted by their digits as by comparing, however long they are", () => {
  const random = generator(2);
  for (const most of [1, 1000, 2 ** 22, 2 ** 33, 2 ** 53]) for (const length of [0, 1, 2047, 2048, 9000]) {
    const values = Float64Array.from({ length }, () => Math.floor((random(2 ** 31) / 2 ** 31) * most));
    assert.deepEqual(inOrder(values.slice()), values.slice().sort());
  }
});

test("what is found at a place is what sorting would put there", () => {
  const random = generator(3);
  for (let seed = 0; seed < 500; seed += 1) {
    const values = Float64Array.from({ length: 1 + random(60) }, () => random(30));
    const from = random(values.length);
    const to = from + 1 + random(values.length - from);
    const place = from + random(to - from);
    const sorted = values.slice(from, to).sort();
    assert.equal(found(values, from, to, place), sorted[place - from]);
    assert.deepEqual(values.slice(from, to).sort(), sorted);
  }
});

test("stretches that touch account for all of the time, and for all that began", () => {
  for (let seed = 0; seed < 200; seed += 1) {
    const { random, model, lanes, shift } = scene(seed);
    const cuts = [-100, ...Array.from({ length: 1 + random(5) }, () => random(1500)).sort((a, b) => a - b), 1e6].filter((at, i, all) => at !== all[i - 1]);
    const parts = cuts.slice(1).map((x1, i) => account(model, lanes, { x0: cuts[i], x1 }, shift));
    const whole = account(model, lanes, { x0: cuts[0], x1: 1e6 }, shift);
    const sum = (/** @type {(part: typeof whole) => number} */ of) => parts.reduce((total, part) => total + of(part), 0);
    whole.sums.forEach((ns, kind) => assert.equal(sum((part) => part.sums[kind]), ns));
    for (const name of /** @type {const} */ (["waited", "opened", "handshakes", "requests"])) assert.equal(sum((part) => part[name]), whole[name]);
    assert.equal(sum((part) => part.stalls.reduce((ns, stall) => ns + stall.ns, 0)), whole.stalls.reduce((ns, stall) => ns + stall.ns, 0));
    assert.equal(whole.waited, whole.servers.reduce((ns, server) => ns + server.waited, 0));
    const lifetimes = lanes.reduce((ns, lane) => ns + model.closed[lane] - model.opened[lane], 0);
    assert.equal(whole.sums.reduce((ns, one) => ns + one, 0), lifetimes);
    // Idling is waited for where a stall lies over it.
    let waited = 0;
    for (const lane of lanes)
      for (let i = model.phases.from[lane]; i < model.phases.from[lane + 1]; i += 1) {
        const [start, end] = [model.phases.start[i], model.phases.end[i]];
        if (KINDS[model.phases.kind[i]].waited) waited += end - start;
        else waited += Math.max(0, Math.min(end, model.stalls.end[lane]) - Math.max(start, model.stalls.start[lane]));
      }
    assert.equal(whole.waited, waited);
    assert.equal(whole.open, lanes.length);
  }
});

test("parts of time have a round length, begin at its multiples, and cover what is in view", () => {
  const random = generator(4);
  for (let seed = 0; seed < 500; seed += 1) {
    const end = 1 + random(1e9);
    const x0 = random(end) - random(1000);
    const view = { x0, x1: x0 + 100 + random(end) };
    const { x0: first, length, parts } = bucketsOf(view, end);
    assert.match(String(length), /^[125]0*$/);
    assert.equal(first % length, 0);
    assert.ok(parts <= 122 && length * 122 >= view.x1 - view.x0);
    assert.ok(first <= Math.max(0, view.x0));
    assert.ok(first + parts * length >= Math.min(end, view.x1));
  }
});

test("what happens is counted once, in its part of time; percentiles are of what began in it", () => {
  for (let seed = 0; seed < 200; seed += 1) {
    const { random, model, lanes, shift, requests } = scene(seed);
    const buckets = { x0: random(300), length: 1 + random(200), parts: 1 + random(8) };
    const { open, opened, requests: counted, waits } = overTime(model, lanes, buckets, shift);
    for (let part = 0; part < buckets.parts; part += 1) {
      const from = buckets.x0 + part * buckets.length;
      const to = from + buckets.length;
      const within = (/** @type {number} */ at) => at - shift() >= from && at - shift() < to;
      assert.equal(opened[part], lanes.filter((lane) => within(model.opened[lane])).length);
      const begun = requests.at.map((_, i) => i).filter((i) => lanes.includes(requests.lane[i]) && within(requests.at[i]));
      assert.equal(counted[part], begun.length);
      const values = begun.filter((i) => requests.present[i]).map((i) => requests.wait[i]).sort((a, b) => a - b);
      assert.equal(waits.sizes[part], values.length);
      assert.equal(waits.ranks[part], values.length ? values[rankOf(95, values.length)] : null);
      const time = lanes.reduce((sum, lane) => sum + Math.max(0, Math.min(to, model.closed[lane] - shift()) - Math.max(from, model.opened[lane] - shift())), 0);
      assert.ok(Math.abs(open[part] * buckets.length - time) < 1e-6);
    }
  }
});

test("instants that are not known are neither counted nor sampled", () => {
  const events = { from: [0, 3], at: [5, 0, 7], valid: [1, 0, 1] };
  const [lanes, buckets, shift] = [[0], { x0: 0, length: 10, parts: 1 }, () => 0];
  assert.deepEqual([...countPer(events, lanes, buckets, shift)], [2]);
  const { sizes, ranks } = percentilePer(events, [1, 2, 3], [1, 1, 0], lanes, buckets, shift, 95);
  assert.deepEqual([[...sizes], ranks], [[1], [1]]);
});

test("samples hold every duration that is known, in order", () => {
  for (let seed = 0; seed < 100; seed += 1) {
    const { model, lanes, requests } = scene(seed);
    if (!requests.at.length) continue;
    const measures = measuresOf(model);
    const of = (/** @type {string} */ key) => [...sample(/** @type {any} */ (measures.find((measure) => measure.key === key)), lanes)];
    const expected = requests.wait.filter((_, i) => requests.present[i] && lanes.includes(requests.lane[i])).sort((a, b) => a - b);
    assert.deepEqual(of("wait"), expected);
    assert.deepEqual(of("request"), expected.map((ns) => 3 * ns));
    const phases = KINDS.flatMap(({ name }) => of(`phase-${name}`));
    assert.equal(phases.reduce((sum, ns) => sum + ns, 0), of("connection").reduce((sum, ns) => sum + ns, 0));
  }
});

test("a histogram counts every value, each between the edges of its column", () => {
  const values = Float64Array.from([0, 1, 9, 10, 11, 99, 100, 101, 12_589, 1e9]);
  const { first, last } = distributionSpan([{ title: "", sorted: values }]);
  const counts = histogram(values, first, last - first + 1);
  assert.equal(counts.reduce((sum, n) => sum + n, 0), values.length);
  assert.equal(counts[0], 2);
  assert.equal(counts[10], 2);
  assert.equal(counts[20], 2);
  assert.equal(counts[90], 1);
});

test("of very many steps, the first and the last are drawn, and none twice", () => {
  for (const length of [1, 2, 599, 600, 601, 100_000]) {
    const ranks = stepsDrawn(length, 600);
    assert.equal(ranks[0], 0);
    assert.equal(ranks[ranks.length - 1], length - 1);
    assert.equal(new Set(ranks).size, Math.min(600, length));
  }
});

test("a time that is typed is read to the nanosecond, as it is written", () => {
  const random = generator(5);
  for (let i = 0; i < 500; i += 1) {
    const ns = random(2 ** 31) * [1, 997, 1_000_003][i % 3];
    assert.equal(nanoseconds(exact(ns)), ns);
    assert.equal(nanoseconds(exact(-ns)), ns ? -ns : 0);
    assert.equal(nanoseconds(shortly(ns)), ns);
  }
  assert.deepEqual(["1.25 s", "300ms", " 7 ", "4us", "4 μs", "12 ns", "0.5 ns"].map(nanoseconds), [1_250_000_000, 300_000_000, 7_000_000, 4000, 4000, 12, 0]);
  assert.deepEqual(["", "x", "1 h", "1 s 2", "1e3", ".5"].map(nanoseconds), Array(6).fill(null));
  assert.deepEqual([1e6, 1_200_000, 100, 0, 2e10].map((ns) => shortly(ns).replace("\u00a0", " ")), ["1 ms", "1.2 ms", "100 ns", "0 ns", "20 s"]);
});

test("what is there never reads 0 %, what is not whole never 100 %", () => {
  assert.deepEqual([[0, 5], [1, 1000], [999, 1000], [5, 5], [1, 3], [0, 0]].map(([part, whole]) => share(part, whole).replace("\u00a0", " ")), ["0 %", "<1 %", ">99 %", "100 %", "33 %", "0 %"]);
});

test("the axis of a distribution has several marks, however narrow it is", () => {
  const wide = decades(3, 9);
  assert.deepEqual(wide.ticktext, ["1\u00a0µs", "10\u00a0µs", "100\u00a0µs", "1\u00a0ms", "10\u00a0ms", "100\u00a0ms", "1\u00a0s"]);
  const narrow = decades(Math.log10(19.9e6), Math.log10(20.9e6));
  assert.deepEqual(narrow.ticktext, ["20.0\u00a0ms", "20.2\u00a0ms", "20.4\u00a0ms", "20.6\u00a0ms", "20.8\u00a0ms"]);
  const random = generator(5);
  for (let i = 0; i < 200; i += 1) {
    const low = 1 + random(8000) / 1000;
    const { tickvals, ticktext } = decades(low, low + 0.1 + random(2000) / 1000);
    assert.ok(tickvals.length >= 2, `${low}`);
    assert.equal(new Set(ticktext).size, ticktext.length, `${ticktext}`);
  }
});
