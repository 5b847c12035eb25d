import assert from "node:assert/strict";
import test from "node:test";

import { Outline, requestName } from "../../conchart/outputs/page/scripts/chart.js";
import { during } from "../../conchart/outputs/page/scripts/detail.js";
import { connections, generator } from "./random.js";

const ASIDE = -5;

/**
 * How often a line that is drawn in steps, first across and then up or down, winds around a place (SVG: nonzero).
 * @param {{x: number[], y: number[]}} line
 * @param {number} atX
 * @param {number} atY
 */
function winding({ x, y }, atX, atY) {
  let turns = 0;
  // Across first: what goes up or down does so at the instant of the later point.
  for (let i = 1; i < x.length; i += 1) {
    if (x[i] < atX) continue;
    if (y[i - 1] < atY && y[i] > atY) turns += 1;
    if (y[i - 1] > atY && y[i] < atY) turns -= 1;
  }
  return turns;
}

test("an outline encloses its boxes and nothing else, and is one line that comes back", () => {
  for (let seed = 0; seed < 400; seed += 1) {
    const random = generator(seed);
    const outline = new Outline(ASIDE);
    const boxes = Array.from({ length: 1 + random(30) }, () => {
      const [left, top] = [random(20), 10 * random(4) + random(3)];
      return { left, right: left + 1 + random(8), top, bottom: top + 1 + random(5) };
    });
    for (const { left, right, top, bottom } of boxes) outline.box(left, right, top, bottom);
    const drawn = outline.drawn("a", {});
    const first = [drawn.x[0], drawn.y[0]];
    assert.deepEqual([drawn.x.at(-1), drawn.y.at(-1)], first);
    assert.ok(drawn.x.length <= 3 * boxes.length + 2);
    for (let atX = ASIDE + 0.5; atX < 30; atX += 1) for (let atY = 0.5; atY < 45; atY += 1) {
      const inside = boxes.some(({ left, right, top, bottom }) => left < atX && atX < right && top < atY && atY < bottom);
      assert.equal(winding(drawn, atX, atY) !== 0, inside, `${seed}: ${atX}, ${atY}`);
    }
  }
});

test("of connections that follow each other, those open in a window are found without a look at the others", () => {
  for (let seed = 0; seed < 300; seed += 1) {
    const random = generator(seed);
    const { opened, closed } = connections(random, { lanes: 1 + random(40), kinds: 2, apart: true });
    const lanes = opened.map((_, lane) => lane);
    const by = random(40);
    const x0 = random(2000);
    const window = { x0, x1: x0 + random(300) };
    let looked = 0;
    const shift = () => {
      looked += 1;
      return by;
    };
    assert.deepEqual(during(lanes, { opened, closed }, window, shift), lanes.filter((lane) => closed[lane] - by >= window.x0 && opened[lane] - by <= window.x1), `${seed}`);
    assert.ok(looked <= 2 * Math.ceil(Math.log2(lanes.length + 1)), `${seed}: ${looked}`);
  }
});

test("a request is named by its path, and a long one by the end of it", () => {
  const named = (/** @type {string | null} */ method, /** @type {string | null} */ target, room = 40) => requestName({ method, target }, room);
  assert.equal(named("GET", "/shop/logo.png"), "/shop/logo.png");
  assert.equal(named("POST", "/login"), "POST /login");
  assert.equal(named("GET", "http://shop.example:8080/a"), "/a");
  assert.equal(named("GET", "http://shop.example"), "/");
  assert.equal(named("GET", "/a/long/way/to/the/logo.png", 12), "…/logo.png");
  assert.equal(named("GET", "/a/long/way/to/", 8), "…/to/");
  assert.equal(named("GET", "/withoutanyotherslash", 8), "/withou…");
  assert.equal(named("A", "www.shop.example", 8), "A www.s…");
  assert.equal(named(null, null), "");
});
