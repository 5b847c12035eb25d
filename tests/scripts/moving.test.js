import assert from "node:assert/strict";
import test from "node:test";

import { Rhythm, movement } from "../../conchart/outputs/page/scripts/moving.js";
import { generator } from "./random.js";

test("what was drawn at an instant is moved to where that instant is in another interval", () => {
  const width = 900;
  const place = (/** @type {{x0: number, x1: number}} */ { x0, x1 }, /** @type {number} */ at) => ((at - x0) / (x1 - x0)) * width;
  for (let seed = 0; seed < 200; seed += 1) {
    const random = generator(seed);
    const interval = () => {
      const x0 = random(1000) - 500;
      return { x0, x1: x0 + 1 + random(1000) };
    };
    const [drawn, view, at] = [interval(), interval(), random(1000)];
    const { scale, by } = movement(drawn, view, width);
    assert.ok(Math.abs(place(drawn, at) * scale + by - place(view, at)) < 1e-6 * width * Math.max(1, scale));
  }
});

test("a long movement is drawn now and then, and a new one begins with steps that are not drawn", () => {
  const rhythm = new Rhythm();
  rhythm.drew(0, 50);
  const steps = Array.from({ length: 60 }, (_, i) => 10_000 + 16 * i);
  const drawn = steps.filter((now) => {
    const due = rhythm.due(now);
    if (due) rhythm.drew(now, now + 50);
    return due;
  });
  assert.ok(!drawn.includes(steps[0]));
  assert.ok(drawn.length >= 2 && drawn.length <= steps.length / 16, `${drawn.length} of ${steps.length}`);
  rhythm.drew(20_000, 20_050);
  assert.equal(rhythm.due(30_000), false);
});

test("what took no time to be drawn is drawn at each step but the first", () => {
  const rhythm = new Rhythm();
  rhythm.drew(5, 5);
  assert.deepEqual([6, 7].map((now) => rhythm.due(now)), [false, true]);
});
