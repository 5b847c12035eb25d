/* All of the capture above the lanes: for what how many users waited, and which part of it the lanes show. */

import { density } from "./detail.js";

/* Of a step in the picture, in pixels; of the part that is shown, the least that can be taken hold of. */
const COLUMN = 2;
const GRIP = 6;

/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./lanes.js").Lanes} Lanes */

/**
 * Add connections that the page does not draw.
 * @param {Float64Array[]} counts by kind: connections, on average, in each part of a window
 * @param {{levels: Float64Array[], part: number}} left by kind: the same, in parts of the capture
 * @param {boolean[]} wanted kinds
 * @param {{x0: number, x1: number}} window
 */
export function addLeft(counts, { levels, part }, wanted, { x0, x1 }) {
  levels.forEach((level, kind) => {
    if (!wanted[kind]) return;
    const counted = counts[kind];
    counted.forEach((_, i) => { counted[i] += level[Math.floor((x0 + ((i + 0.5) * (x1 - x0)) / counted.length) / part)] ?? 0; });
  });
}

export class Overview {
  /**
   * @param {Model} model
   * @param {Lanes} lanes
   */
  constructor(model, lanes) {
    this.model = model;
    this.lanes = lanes;
    this.box = /** @type {HTMLElement} */ (document.getElementById("overview"));
    this.canvas = /** @type {HTMLCanvasElement} */ (this.box.querySelector("canvas"));
    this.window = /** @type {HTMLElement} */ (document.getElementById("overview-window"));
    /** What the picture was made of: it is made again where anything of this is another. @type {unknown[]} */
    this.made = [];
    this.listen();
  }

  /** Follow the lanes: which part they show, and where they lie. */
  follow() {
    const { lanes } = this;
    const { left, width } = lanes.inner;
    Object.assign(this.box.style, { marginLeft: `${left}px`, width: `${width}px` });
    const [from, to] = lanes.full;
    const at = (/** @type {number} */ x) => ((x - from) / (to - from)) * width;
    const [x0, x1] = [at(lanes.view.x0), at(lanes.view.x1)];
    const wide = Math.max(GRIP, x1 - x0);
    Object.assign(this.window.style, { left: `${Math.min(x0, width - wide)}px`, width: `${wide}px` });
    this.box.classList.toggle("whole", x0 <= 0 && x1 >= width);
    const making = [width, lanes.filtered, lanes.view.shift, this.model.drawn, from, to];
    if (making.some((one, i) => one !== this.made[i])) {
      this.made = making;
      this.draw(width);
    }
  }

  /** @param {number} width */
  draw(width) {
    const { model, lanes, canvas } = this;
    const { kinds } = model.drawnKinds;
    const height = this.box.clientHeight;
    const scale = window.devicePixelRatio || 1;
    Object.assign(canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
    const context = canvas.getContext("2d");
    const parts = Math.max(1, Math.round(width / COLUMN));
    if (!context || !height) return;
    context.scale(scale, scale);
    const [x0, x1] = lanes.full;
    // Idling would fill it where many connections are kept open.
    const waited = kinds.some((kind, i) => kind.waited && model.costs[i]?.some((ns) => ns > 0)) ? kinds.map((kind) => Boolean(kind.waited)) : kinds.map(() => true);
    const counts = density(model.drawn, lanes.filtered, { x0, x1 }, parts, kinds.length, lanes.view.shift).map((levels, kind) => (waited[kind] ? levels : levels.fill(0)));
    // Who is left out of the page is no part of a choice, and does not move with the beginnings of connections.
    if (model.left?.counts(lanes.filtered) && lanes.view.axis !== "own") addLeft(counts, model.left, waited, { x0, x1 });
    let most = 0;
    for (let i = 0; i < parts; i += 1) most = Math.max(most, counts.reduce((sum, levels) => sum + levels[i], 0));
    const below = new Float64Array(parts);
    // Columns end at whole pixels, so that nothing shines through between them.
    const x = (/** @type {number} */ part) => Math.round((part * width * scale) / parts) / scale;
    counts.forEach((levels, kind) => {
      context.fillStyle = kinds[kind].colour;
      levels.forEach((level, i) => {
        const high = (level / (most || 1)) * height;
        if (high > 0) context.fillRect(x(i), height - below[i] - high, x(i + 1) - x(i), high);
        below[i] += high;
      });
    });
  }

  listen() {
    const { box, lanes } = this;
    /** Where the pointer took hold of which part. @type {{at: number, x0: number, x1: number, moves: boolean} | null} */
    let held = null;
    const instant = (/** @type {PointerEvent} */ event) => {
      const { left, width } = box.getBoundingClientRect();
      const [from, to] = lanes.full;
      return from + Math.min(1, Math.max(0, (event.clientX - left) / width)) * (to - from);
    };
    box.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      const at = instant(event);
      const { x0, x1 } = lanes.view;
      // Inside of what is shown, it moves; beside it, or where all is shown, another part is taken.
      held = { at, x0, x1, moves: at >= x0 && at <= x1 && !box.classList.contains("whole") };
      box.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    box.addEventListener("pointermove", (event) => {
      if (!held) return;
      const at = instant(event);
      if (held.moves) lanes.stepTo(held.x0 + at - held.at, held.x1 + at - held.at);
      else if (at !== held.at) lanes.stepTo(Math.min(at, held.at), Math.max(at, held.at));
    });
    box.addEventListener("pointerup", (event) => {
      // A click beside what is shown brings that there.
      if (held && !held.moves && instant(event) === held.at && !box.classList.contains("whole")) lanes.zoomTo(held.at - (held.x1 - held.x0) / 2, held.at + (held.x1 - held.x0) / 2);
      held = null;
    });
    box.addEventListener("pointercancel", () => { held = null; });
    box.addEventListener("dblclick", () => lanes.reset());
  }
}
