/* The swimlanes: a plotly chart as high as its box, redrawn for the part of the lanes that is scrolled into view. While
   somebody zooms or pans, what is drawn is moved. */

import { MARGIN, MIN_SPAN, figure } from "./chart.js";
import { groupTip, laneTip, linksOf, packetTip, phaseTip } from "./describe.js";
import { clip, count, plain, plural, svg } from "./format.js";
import { Moving, Rhythm } from "./moving.js";
import { Overview } from "./overview.js";
import { foldGroups, tellTimes } from "./state.js";
import { HEADING, grow, layRows, rowAt } from "./tree.js";

/** @typedef {import("./model.js").Lane} Lane */
/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./tree.js").Row} Row */
/**
 * What lies under the mouse.
 * @typedef {{row: Row, pixel: number, at: number | null, lane: number | null}} Hit
 * What is told of it: the links that are shown, and from which connection.
 * @typedef {{links: Record<string, any>[], content: Node[], lane?: Lane}} Target
 */

/* Of a connection that carried many others, the first are joined. */
const MAX_JOINED = 50;
/* Two pages of A4 between their margins, in CSS pixels. */
const PRINTED = { width: 700, height: 1800 };

/**
 * The first of some stretches, in their order, that ends after an instant.
 * @param {{end: number}[]} stretches
 * @param {number} at
 */
const firstEnding = (stretches, at) => stretches.findIndex((stretch) => stretch.end > at);

export class Lanes {
  /**
   * @param {Model} model
   * @param {import("./state.js").State} state
   * @param {(lane: number | null, how?: object) => void} onChoose
   */
  constructor(model, state, onChoose) {
    this.model = model;
    this.state = state;
    this.onChoose = onChoose;
    /** What the next frame shows: nothing new, what is drawn moved to where it is now, or lanes drawn anew. @type {"" | "moved" | "drawn"} */
    this.pending = "";
    /** Whether the range changes by a step, after which others may follow at once. */
    this.stepping = false;
    this.printing = false;
    /** What a print interrupts. */
    this.onScreen = { height: 0, top: 0 };
    /** Of all rows. */
    this.height = 0;
    /** @type {[number, number]} */
    this.full = [0, 1];
    /** @type {import("./tree.js").Server[]} */
    this.tree = [];
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Int32Array} by lane, -1 where it is folded away */
    this.rowOf = new Int32Array();
    /** Where the plot's inside lies in its box. */
    this.inner = { left: 0, top: 0, width: 1, height: 1 };
    this.box = /** @type {HTMLElement} */ (document.getElementById("lanes"));
    this.plot = /** @type {PlotlyElement} */ (document.getElementById("plot"));
    this.spacer = /** @type {HTMLElement} */ (document.getElementById("spacer"));
    this.tip = /** @type {HTMLElement} */ (document.getElementById("tip"));
    this.joins = /** @type {SVGElement} */ (/** @type {unknown} */ (document.getElementById("joins")));
    this.note = /** @type {HTMLElement} */ (document.getElementById("lanes-note"));
    this.left = /** @type {HTMLElement} */ (document.getElementById("lanes-left"));
    this.axisChoice = /** @type {HTMLSelectElement} */ (document.getElementById("axis"));
    this.packing = /** @type {HTMLInputElement} */ (document.getElementById("packed"));
    this.order = /** @type {HTMLSelectElement} */ (document.getElementById("order"));
    this.heights = /** @type {HTMLSelectElement} */ (document.getElementById("lane-height"));
    /** @type {import("./chart.js").View} */
    this.view = { x0: 0, x1: 1, top: 0, width: 0, height: 0, shift: () => 0, axis: "span" };
    /** Where nobody chose another one. */
    this.usualHeight = model.count <= 60 ? 24 : model.count <= 400 ? 16 : 8;
    /** @type {ArrayLike<number>} */
    this.filtered = Uint32Array.from({ length: model.count }, (_, lane) => lane);
    this.overview = new Overview(model, this);
    this.moving = new Moving(this.plot);
    this.rhythm = new Rhythm();
    this.measure();
    [this.view.x0, this.view.x1] = this.full;
    this.show(this.filtered);
    this.tellControls();
    this.listen();
  }

  /* All times that there are. */
  measure() {
    const { model } = this;
    let [begun, { span }] = [model.begun, model];
    if (this.view.axis === "own") [begun, span] = [0, /** @type {Float64Array} */ (model.opened).reduce((most, opened, lane) => Math.max(most, model.closed[lane] - opened), 1)];
    this.full = [begun - (span - begun) * 0.004, span + (span - begun) * 0.004];
  }

  /** The lane of the chosen connection. */
  get chosen() {
    const { chosen } = this.state.shown;
    return chosen === null ? null : (this.model.laneOf.get(chosen) ?? null);
  }

  get laneHeight() {
    return this.state.shown.height ?? this.usualHeight;
  }

  /**
   * Draw what has changed. Times are told since the start of the capture ("span"), on a clock ("utc", "local"), or of
   * each connection since its own first packet ("own"), so that handshakes can be compared below each other.
   * @param {Set<import("./state.js").Name>} changed
   */
  follow(changed) {
    const { view, model } = this;
    const { axis, range } = this.state.shown;
    const any = (/** @type {import("./state.js").Name[]} */ ...names) => names.some((name) => changed.has(name));
    const moved = (axis === "own") !== (view.axis === "own");
    if (any("axis")) Object.assign(view, { axis, shift: axis === "own" ? (/** @type {number} */ lane) => model.opened[lane] : () => 0 });
    if (moved || any("seenFrom")) this.measure();
    [view.x0, view.x1] = range ?? this.full;
    if (moved || any("seenFrom", "packed", "costly")) this.show(this.filtered);
    else if (any("unfolded", "height")) this.lay();
    else if (any("axis", "chosen") || (any("range") && !this.stepping)) this.redrawSoon();
    else if (any("range")) this.moveSoon();
    this.tellControls();
  }

  tellControls() {
    const { axis, packed, costly } = this.state.shown;
    this.axisChoice.value = axis;
    this.packing.checked = packed;
    this.order.value = costly ? "cost" : "time";
    this.heights.value = String(this.laneHeight);
  }

  /**
   * Draw these lanes; where there are fewer than before, the box keeps its height so that the page does not jump.
   * @param {ArrayLike<number>} filtered
   */
  show(filtered) {
    this.filtered = filtered;
    const { packed, costly, axis } = this.state.shown;
    this.tree = grow(this.model, filtered, { packed: packed && axis !== "own", costly });
    this.lay();
  }

  lay() {
    const { rows, height } = layRows(this.tree, new Map(this.state.shown.unfolded), this.laneHeight);
    this.rows = rows;
    this.height = Math.max(height, 60);
    this.rowOf = new Int32Array(this.model.count).fill(-1);
    rows.forEach((row, i) => row.kind === "track" && row.lanes.forEach((lane) => { this.rowOf[lane] = i; }));
    const limit = Math.min(1100, Math.max(360, window.innerHeight * 0.72));
    const whole = this.height + MARGIN.top + MARGIN.bottom;
    this.view.height = Math.round(Math.min(limit, Math.max(whole, this.view.height)));
    this.box.style.height = `${this.view.height + 1}px`;
    this.spacer.style.height = `${Math.max(0, whole - this.view.height)}px`;
    this.redraw();
  }

  /**
   * Fold a group, or unfold it.
   * @param {Row} row
   */
  toggle(row) {
    this.state.change(foldGroups(this.state.shown, [row.key], !row.open));
  }

  /**
   * The row of a lane; what it is folded into is unfolded.
   * @param {number} lane
   */
  reveal(lane) {
    if (this.rowOf[lane] < 0) {
      const { model } = this;
      const server = `s${model.group[lane]}`;
      this.state.change(foldGroups(this.state.shown, [server, `${server}/${model.fact(lane, "client_ip")}`], true));
    }
    return this.rows[this.rowOf[lane]];
  }

  redraw() {
    const began = performance.now();
    this.pending = "";
    this.moving.end(this.view);
    this.view.width = this.printing ? PRINTED.width : this.box.clientWidth;
    this.view.top = this.printing ? 0 : this.box.scrollTop;
    const { traces, layout, inner, hiddenPackets } = figure(this.model, this.rows, this.view, this.chosen);
    this.inner = inner;
    this.overview.follow();
    this.join([]);
    this.note.textContent = hiddenPackets ? `${count(hiddenPackets)} packets are in view: zoom in to see them.` : "";
    Plotly.react(this.plot, traces, layout, { displayModeBar: false, doubleClick: false, scrollZoom: false, responsive: false, showTips: false });
    this.rhythm.drew(began, performance.now());
  }

  /* At most one drawing per frame, however fast the events come. */
  redrawSoon() {
    this.nextFrame("drawn");
  }

  /* Another part of the time is shown. */
  moveSoon() {
    this.nextFrame(this.pending || "moved");
  }

  /** @param {"moved" | "drawn"} shows */
  nextFrame(shows) {
    if (!this.pending) requestAnimationFrame(() => this.showPending());
    this.pending = shows;
  }

  showPending() {
    const shows = this.pending;
    this.pending = "";
    if (shows === "drawn" || (shows && this.rhythm.due(performance.now()))) this.redraw();
    else if (shows) this.move();
  }

  move() {
    this.moving.show(this.view, this.inner);
    this.overview.follow();
    this.join([]);
    this.rhythm.whenStill(() => this.redraw());
  }

  /* Whoever looks at what Plotly knows finds what is shown. */
  settle() {
    if (this.pending || this.moving.parts) this.redraw();
  }

  /**
   * @param {number} x0
   * @param {number} x1
   */
  zoomTo(x0, x1) {
    const [least, most] = this.full;
    const span = Math.min(most - least, Math.max(MIN_SPAN, x1 - x0));
    const start = Math.max(Math.min(x0 + (x1 - x0 - span) / 2, most - span), least);
    this.state.change({ range: span === most - least ? null : [start, start + span] });
  }

  /**
   * Zoom or pan a little.
   * @param {number} x0
   * @param {number} x1
   */
  stepTo(x0, x1) {
    this.stepping = true;
    this.zoomTo(x0, x1);
    this.stepping = false;
  }

  /**
   * @param {number} factor
   * @param {number} at which instant stays where it is
   */
  zoomBy(factor, at = (this.view.x0 + this.view.x1) / 2) {
    const { x0, x1 } = this.view;
    this.stepTo(at - (at - x0) * factor, at + (x1 - at) * factor);
  }

  /** @param {number} share */
  pan(share) {
    const { x0, x1 } = this.view;
    const step = (x1 - x0) * share;
    this.stepTo(x0 + step, x1 + step);
  }

  reset() {
    this.zoomTo(...this.full);
  }

  /** @param {Iterable<number>} lanes */
  zoomToLanes(lanes) {
    const { model, view } = this;
    let [start, end] = [Infinity, -Infinity];
    for (const lane of lanes) {
      start = Math.min(start, model.opened[lane] - view.shift(lane));
      end = Math.max(end, model.closed[lane] - view.shift(lane));
    }
    const margin = Math.max((end - start) * 0.05, MIN_SPAN);
    this.zoomTo(start - margin, end + margin);
  }

  /**
   * Bring the chosen lane into view.
   * @returns {Row | null} where it is drawn
   */
  bring() {
    const { chosen } = this;
    const row = chosen === null ? null : this.reveal(chosen);
    if (row) {
      const room = this.inner.height;
      if (row.top < this.box.scrollTop + HEADING) this.box.scrollTop = row.top - HEADING;
      else if (row.top + row.height > this.box.scrollTop + room) this.box.scrollTop = row.top + row.height - room + 4;
    }
    return row;
  }

  /**
   * What lies under a mouse position: {row, at} or nothing.
   * @param {MouseEvent} event
   * @returns {Hit | null}
   */
  under(event) {
    const frame = this.plot.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left - this.inner.left, event.clientY - frame.top - this.inner.top];
    if (y < 0 || y > this.inner.height || x < -this.inner.left || x > this.inner.width) return null;
    const row = rowAt(this.rows, y + this.view.top);
    const pixel = (this.view.x1 - this.view.x0) / this.inner.width;
    if (!row) return null;
    const at = x < 0 ? null : this.view.x0 + x * pixel;
    return { row, pixel, at, lane: row.kind === "track" ? this.laneAt(row.lanes, at, pixel) : null };
  }

  /**
   * Of connections that share a lane, the one at an instant, or near it.
   * @param {number[]} lanes
   * @param {number | null} at
   * @param {number} pixel
   */
  laneAt(lanes, at, pixel) {
    if (lanes.length === 1) return lanes[0];
    if (at === null) return null;
    const { model, view } = this;
    const off = (/** @type {number} */ lane) => Math.max(model.opened[lane] - view.shift(lane) - at, at - model.closed[lane] + view.shift(lane));
    const nearest = lanes.reduce((best, lane) => (off(lane) < off(best) ? lane : best));
    return off(nearest) <= 4 * pixel ? nearest : null;
  }

  /** @param {MouseEvent} event */
  hover(event) {
    const hit = event.buttons ? null : this.under(event);
    /** @type {Target | null} */
    const target = hit && (hit.lane === null ? groupTip(hit, this.model, this.view) : this.laneContent(hit, hit.lane));
    this.tip.hidden = !target;
    if (!target) {
      this.join([]);
      return;
    }
    this.join(target.links, target.lane);
    const { content } = target;
    this.tip.replaceChildren(...content);
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const x = event.clientX + 16 + width > window.innerWidth ? event.clientX - width - 12 : event.clientX + 16;
    const y = event.clientY + 18 + height > window.innerHeight ? event.clientY - height - 12 : event.clientY + 18;
    Object.assign(this.tip.style, { left: `${Math.max(4, x)}px`, top: `${Math.max(4, y)}px` });
  }

  /**
   * What the mouse is over on a lane: a packet, a phase, or the lane itself.
   * @param {Hit} hit
   * @param {number} index
   * @returns {Target}
   */
  laneContent({ row, at, pixel }, index) {
    const { model } = this;
    const lane = model.lane(index);
    if (at === null) return { lane, links: lane.links, content: laneTip(lane, true, model) };
    const instant = at + this.view.shift(index);
    const near = (/** @type {any} */ thing) => Math.abs(thing.at - instant);
    const packet = row.height < 12 ? null : lane.packets.reduce((/** @type {any} */ best, p) => (near(p) <= 5 * pixel && (!best || near(p) < near(best)) ? p : best), null);
    if (packet) return { lane, links: lane.links, content: packetTip(lane, packet, model) };
    const over = (/** @type {any[]} */ stretches) => {
      const i = firstEnding(stretches, instant);
      return [stretches[i < 0 ? stretches.length : i], stretches[(i < 0 ? stretches.length : i) - 1]].find((s) => s && s.start - 2 * pixel <= instant && s.end + 2 * pixel >= instant);
    };
    const [phase, stall] = [over(lane.phases), over(lane.stalls)];
    return { lane, links: phase ? linksOf(lane, phase) : lane.links, content: phase ? phaseTip(lane, phase, stall, model) : laneTip(lane, true, model) };
  }

  /**
   * Join what is linked with what the mouse is over, on the lane here; an end without a lane is left out.
   * @param {Record<string, any>[]} links
   * @param {Lane} [here]
   */
  join(links, here) {
    const { left, top, width, height } = this.inner;
    const scrolled = this.box.scrollTop;
    const x = (/** @type {number} */ at) => ((at - this.view.x0) / (this.view.x1 - this.view.x0)) * width;
    const end = (/** @type {{lane?: Lane}} */ { lane }, /** @type {number[]} */ extent) => {
      const row = lane && this.rows[this.rowOf[lane.index]];
      if (!row) return null;
      const [from, to] = extent.map((at) => x(at - this.view.shift(lane.index)));
      return { row, lane, from, to: Math.max(to, from + 3), top: row.top - scrolled, bottom: row.top + row.height - scrolled };
    };
    /** @type {SVGElement[]} */
    const shapes = [];
    const marked = new Set([here]);
    for (const link of links.slice(0, MAX_JOINED)) {
      const [front, back] = [end(link.front, link.inFront), end(link.back, link.inBack)];
      if (!front || !back) continue;
      for (const { lane, from, to, top: y, bottom } of [front, back]) {
        if (!marked.has(lane)) shapes.push(svg("rect", { class: "lane", x: 0, y, width, height: bottom - y }));
        marked.add(lane);
        shapes.push(svg("rect", { class: "bar-end", x: from, y: y + 1, width: to - from, height: bottom - y - 2 }));
      }
      const [upper, lower] = front.top < back.top ? [front, back] : [back, front];
      shapes.push(svg("polygon", { class: "ribbon", points: `${upper.from},${upper.bottom} ${upper.to},${upper.bottom} ${lower.to},${lower.top} ${lower.from},${lower.top}` }));
    }
    Object.assign(this.joins.style, { left: `${left}px`, top: `${scrolled + top}px`, width: `${width}px`, height: `${height}px`, display: shapes.length ? "block" : "none" });
    this.joins.replaceChildren(...shapes);
  }

  /**
   * Choose the next lane below, or above; connections that share one follow each other in time.
   * @param {number} by
   */
  step(by) {
    const order = this.rows.flatMap((row) => (row.kind === "track" ? row.lanes : []));
    if (!order.length) return;
    const now = this.chosen === null ? -1 : order.indexOf(this.chosen);
    const next = now < 0 ? (by > 0 ? 0 : order.length - 1) : Math.min(order.length - 1, Math.max(0, now + by));
    this.onChoose(order[next], { scroll: true });
  }

  /* On paper nothing scrolls: as many rows are drawn as two pages take, and what is left out is said. */
  print() {
    const { view, box } = this;
    document.documentElement.dataset.printing = "";
    this.onScreen = { height: view.height, top: box.scrollTop };
    const whole = this.height + MARGIN.top + MARGIN.bottom;
    view.height = Math.min(whole, PRINTED.height);
    this.printing = true;
    box.style.height = `${view.height + 1}px`;
    box.style.width = `${PRINTED.width}px`;
    const out = this.rows.filter((row) => row.top + row.height > view.height - MARGIN.top - MARGIN.bottom).length;
    this.left.textContent = out ? `${count(out)} of ${plural(this.rows.length, "row")} are not printed: fold groups, or filter, for what is to be on paper.` : "";
    this.redraw();
  }

  unprint() {
    if (!this.printing) return;
    this.printing = false;
    delete document.documentElement.dataset.printing;
    this.view.height = this.onScreen.height;
    this.box.style.height = `${this.view.height + 1}px`;
    this.box.style.width = "";
    this.left.textContent = "";
    this.redraw();
    this.box.scrollTop = this.onScreen.top;
  }

  /* What is in view, with a title and the colours' meanings, as PNG. */
  async saveImage() {
    this.settle();
    const { width, height } = this.view;
    const { data, layout } = this.plot;
    const shown = new Set(data.map((trace) => trace.name));
    const legend = this.model.kinds.filter((kind) => shown.has(kind.name));
    const lines = Math.ceil(legend.length / Math.max(1, Math.floor(width / 150)));
    const room = { top: 28, bottom: 20 * lines + 8 };
    const whole = height + room.top + room.bottom;
    const swatches = legend.map((kind, i) => {
      const perLine = Math.ceil(legend.length / lines);
      const [x, y] = [16 + (i % perLine) * 150, 18 + 20 * Math.floor(i / perLine)];
      const place = { xref: "paper", yref: "paper", xanchor: "left", x: 0, xshift: x - layout.margin.l, y: 0, yshift: -y - layout.margin.b };
      return [
        { ...place, text: "■", font: { ...layout.font, size: 15, color: kind.colour }, showarrow: false },
        { ...place, xshift: place.xshift + 16, text: plain(kind.title), font: layout.font, showarrow: false },
      ];
    });
    /** @type {PlotlyFigure} */
    const picture = {
      data,
      layout: {
        ...layout, height: whole, margin: { ...layout.margin, t: layout.margin.t + room.top, b: layout.margin.b + room.bottom },
        title: { text: plain(clip(document.title, Math.floor(width / 9))), x: 0, xref: "container", xanchor: "left", pad: { l: 10 }, y: 1, yref: "container", yanchor: "top", font: { ...layout.font, size: 15, weight: 700 } },
        annotations: [...layout.annotations, ...swatches.flat()],
      },
    };
    picture.layout.title.pad.t = 8;
    return Plotly.downloadImage(picture, { format: "png", scale: 2, width, height: whole, filename: "conchart-lanes" });
  }

  /** Fingers: a tap is a click, one pans the time, and up and down scrolls as ever; two zoom. */
  listenToFingers() {
    // Plotly would take every touch for the beginning of a drag: then there is no click.
    this.box.addEventListener("touchstart", (event) => event.stopPropagation(), { capture: true, passive: true });
    /** @type {Map<number, PointerEvent>} */
    const fingers = new Map();
    const spread = () => {
      const [one, other] = [...fingers.values()].map((event) => event.clientX);
      return other === undefined ? null : { apart: Math.max(20, Math.abs(one - other)), middle: (one + other) / 2 };
    };
    const instant = (/** @type {number} */ x) => this.view.x0 + ((x - this.plot.getBoundingClientRect().left - this.inner.left) / this.inner.width) * (this.view.x1 - this.view.x0);
    const ended = (/** @type {PointerEvent} */ event) => fingers.delete(event.pointerId);
    this.box.addEventListener("pointerdown", (event) => event.pointerType === "touch" && fingers.set(event.pointerId, event));
    this.box.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (!before) return;
      const was = spread();
      fingers.set(event.pointerId, event);
      const is = spread();
      if (was && is) this.zoomBy(was.apart / is.apart, instant(is.middle));
      else this.pan((before.clientX - event.clientX) / this.inner.width);
    });
    for (const end of /** @type {const} */ (["pointerup", "pointercancel", "pointerleave"])) this.box.addEventListener(end, ended);
  }

  listen() {
    this.listenToFingers();
    this.plot.on("plotly_relayout", (change) => {
      const [x0, x1] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (x0 === undefined || x1 === undefined) return;
      this.zoomTo(Number(x0), Number(x1));
      this.redrawSoon(); // where nothing changed, too: Plotly has already drawn what was asked for
    });
    this.box.addEventListener("scroll", () => this.redrawSoon());
    this.box.addEventListener("mousemove", (event) => this.hover(event));
    this.box.addEventListener("mouseleave", () => {
      this.tip.hidden = true;
      this.join([]);
    });
    /** @type {MouseEvent | null} */
    let pressed = null;
    this.box.addEventListener("mousedown", (event) => {
      this.settle(); // what is dragged starts from what Plotly knows
      pressed = event;
      this.tip.hidden = true;
    }, true);
    window.addEventListener("mouseup", (event) => {
      const still = pressed && event.button === 0 && Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) < 4;
      pressed = null;
      const hit = still && this.under(event);
      if (still && event.detail === 2) this.reset();
      else if (hit && hit.row.kind !== "track") this.toggle(hit.row);
      else if (hit && hit.lane !== null) this.onChoose(hit.lane, { scroll: true });
    }, true);
    this.box.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const hit = this.under(event);
      this.zoomBy(Math.exp((event.deltaY || event.deltaX) * 0.002), (hit && hit.at) ?? undefined);
    }, { passive: false });
    /** @type {Record<string, () => void>} */
    const keys = {
      "+": () => this.zoomBy(0.5), "=": () => this.zoomBy(0.5), "-": () => this.zoomBy(2), 0: () => this.reset(),
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), ArrowUp: () => this.step(-1), ArrowDown: () => this.step(1),
      Enter: () => this.chosen !== null && this.zoomToLanes([this.chosen]),
    };
    this.box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    new ResizeObserver(() => this.box.clientWidth !== this.view.width && this.redrawSoon()).observe(this.box);
    window.addEventListener("beforeprint", () => this.print());
    window.addEventListener("afterprint", () => this.unprint());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redrawSoon());
    const click = (/** @type {string} */ id, /** @type {() => void} */ action) => document.getElementById(id)?.addEventListener("click", action);
    click("zoom-in", () => this.zoomBy(0.5));
    click("zoom-out", () => this.zoomBy(2));
    click("zoom-reset", () => this.reset());
    click("save-image", () => this.saveImage());
    const { state } = this;
    this.axisChoice.addEventListener("change", () => state.change(tellTimes(state.shown, this.axisChoice.value)));
    this.packing.addEventListener("change", () => state.change({ packed: this.packing.checked }));
    this.order.addEventListener("change", () => state.change({ costly: this.order.value === "cost" }));
    this.heights.addEventListener("change", () => {
      const height = Number(this.heights.value);
      state.change({ height: height === this.usualHeight ? null : height });
    });
  }
}
