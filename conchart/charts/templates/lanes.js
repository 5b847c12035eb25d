/* The swimlanes: a plotly chart as high as its box, redrawn for the part of the lanes that is scrolled into view. */

/* Of a connection that carried many others, the first are joined. */
const MAX_JOINED = 50;

class Lanes {
  constructor(model, { onChoose }) {
    Object.assign(this, { model, onChoose, chosen: null });
    this.box = document.getElementById("lanes");
    this.plot = document.getElementById("plot");
    this.spacer = document.getElementById("spacer");
    this.tip = document.getElementById("tip");
    this.joins = document.getElementById("joins");
    this.note = document.getElementById("lanes-note");
    this.full = [-model.span * 0.004, model.span * 1.004];
    this.view = { x0: this.full[0], x1: this.full[1], top: 0, width: 0, height: 0 };
    this.laneHeight = model.lanes.length <= 60 ? 24 : model.lanes.length <= 400 ? 16 : 8;
    this.show(model.lanes);
    this.listen();
  }

  /* Draw these lanes; where there are fewer than before, the box keeps its height so that the page does not jump. */
  show(lanes) {
    this.lanes = lanes;
    const { rows, height } = layRows(this.model.groups, lanes, this.laneHeight);
    Object.assign(this, { rows, height: Math.max(height, 60) });
    const limit = Math.min(1100, Math.max(360, window.innerHeight * 0.72));
    const whole = this.height + MARGIN.top + MARGIN.bottom;
    this.view.height = Math.round(Math.min(limit, Math.max(whole, this.view.height)));
    this.box.style.height = `${this.view.height + 1}px`;
    this.spacer.style.height = `${Math.max(0, whole - this.view.height)}px`;
    this.redraw();
  }

  redraw() {
    this.view.width = this.box.clientWidth;
    this.view.top = this.box.scrollTop;
    const { traces, layout, inner, hiddenPackets } = figure(this.model, this.rows, this.view, this.chosen);
    this.inner = inner;
    this.join([]);
    this.note.textContent = hiddenPackets ? `${count(hiddenPackets)} packets are in view: zoom in to see them.` : "";
    return Plotly.react(this.plot, traces, layout, { displayModeBar: false, doubleClick: false, scrollZoom: false, responsive: false, showTips: false });
  }

  /* At most one drawing per frame, however fast the events come. */
  redrawSoon() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.redraw();
    });
  }

  zoomTo(x0, x1) {
    const [least, most] = this.full;
    const span = Math.min(most - least, Math.max(MIN_SPAN, x1 - x0));
    const start = Math.min(Math.max(x0 + (x1 - x0 - span) / 2, least), most - span);
    Object.assign(this.view, { x0: start, x1: start + span });
    this.redrawSoon();
  }

  zoomBy(factor, at = (this.view.x0 + this.view.x1) / 2) {
    const { x0, x1 } = this.view;
    this.zoomTo(at - (at - x0) * factor, at + (x1 - at) * factor);
  }

  pan(share) {
    const { x0, x1 } = this.view;
    const step = (x1 - x0) * share;
    this.zoomTo(x0 + step, x1 + step);
  }

  reset() {
    [this.view.x0, this.view.x1] = this.full;
    this.redrawSoon();
  }

  zoomToLanes(lanes) {
    const start = lanes.reduce((least, lane) => Math.min(least, lane.opened), Infinity);
    const end = lanes.reduce((most, lane) => Math.max(most, lane.opened + lane.duration), -Infinity);
    const margin = Math.max((end - start) * 0.05, MIN_SPAN);
    this.zoomTo(start - margin, end + margin);
  }

  /* Mark a lane (or none) and bring it into view. */
  choose(lane) {
    this.chosen = lane ? lane.stream : null;
    const row = this.rows.find((r) => r.lane === lane);
    if (lane && row) {
      const room = this.inner.height;
      if (row.top < this.box.scrollTop + GROUP_HEIGHT) this.box.scrollTop = row.top - GROUP_HEIGHT;
      else if (row.top + row.height > this.box.scrollTop + room) this.box.scrollTop = row.top + row.height - room + 4;
    }
    this.redrawSoon();
  }

  /* What lies under a mouse position: {row, at} or nothing. */
  under(event) {
    const frame = this.plot.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left - this.inner.left, event.clientY - frame.top - this.inner.top];
    if (y < 0 || y > this.inner.height || x < -this.inner.left || x > this.inner.width) return null;
    const row = rowAt(this.rows, y + this.view.top);
    const pixel = (this.view.x1 - this.view.x0) / this.inner.width;
    return row && { row, pixel, at: x < 0 ? null : this.view.x0 + x * pixel };
  }

  hover(event) {
    const hit = event.buttons ? null : this.under(event);
    this.tip.hidden = !(hit && hit.row.lane);
    if (this.tip.hidden) {
      this.join([]);
      return;
    }
    const { lane } = hit.row;
    const reach = 5 * hit.pixel;
    const near = (thing) => Math.abs(thing.at - hit.at);
    const packet = hit.at === null || hit.row.height < 12 ? null : lane.packets.reduce((best, p) => (near(p) <= reach && (!best || near(p) < near(best)) ? p : best), null);
    const at = (stretches) => {
      const index = firstAfter(stretches, hit.at);
      return [stretches[index], stretches[index - 1]].find((s) => s && s.start - 2 * hit.pixel <= hit.at && s.end + 2 * hit.pixel >= hit.at);
    };
    const [phase, stall] = hit.at === null ? [] : [at(lane.phases), at(lane.stalls)];
    const content = packet ? packetTip(lane, packet) : phase ? phaseTip(lane, phase, stall, this.model) : laneTip(lane, true);
    this.join(phase ? linksOf(lane, phase) : lane.links, lane);
    this.tip.replaceChildren(...content);
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const x = event.clientX + 16 + width > window.innerWidth ? event.clientX - width - 12 : event.clientX + 16;
    const y = event.clientY + 18 + height > window.innerHeight ? event.clientY - height - 12 : event.clientY + 18;
    Object.assign(this.tip.style, { left: `${Math.max(4, x)}px`, top: `${Math.max(4, y)}px` });
  }

  /* Join what is linked with what the mouse is over, on the lane here; an end without a lane is left out. */
  join(links, here) {
    const { left, top, width, height } = this.inner;
    const scrolled = this.box.scrollTop;
    const x = (at) => ((at - this.view.x0) / (this.view.x1 - this.view.x0)) * width;
    const end = ({ lane }, extent) => {
      const row = lane && this.rows.find((r) => r.lane === lane);
      if (!row) return null;
      const [from, to] = extent.map(x);
      return { row, from, to: Math.max(to, from + 3), top: row.top - scrolled, bottom: row.top + row.height - scrolled };
    };
    const shapes = [];
    const marked = new Set([here]);
    for (const link of links.slice(0, MAX_JOINED)) {
      const [front, back] = [end(link.front, link.inFront), end(link.back, link.inBack)];
      if (!front || !back) continue;
      for (const { row, from, to, top: y, bottom } of [front, back]) {
        if (!marked.has(row.lane)) shapes.push(svg("rect", { class: "lane", x: 0, y, width, height: bottom - y }));
        marked.add(row.lane);
        shapes.push(svg("rect", { class: "bar-end", x: from, y: y + 1, width: to - from, height: bottom - y - 2 }));
      }
      const [upper, lower] = front.top < back.top ? [front, back] : [back, front];
      shapes.push(svg("polygon", { class: "ribbon", points: `${upper.from},${upper.bottom} ${upper.to},${upper.bottom} ${lower.to},${lower.top} ${lower.from},${lower.top}` }));
    }
    Object.assign(this.joins.style, { left: `${left}px`, top: `${scrolled + top}px`, width: `${width}px`, height: `${height}px`, display: shapes.length ? "block" : "none" });
    this.joins.replaceChildren(...shapes);
  }

  step(by) {
    if (!this.lanes.length) return;
    const now = this.lanes.findIndex((lane) => lane.stream === this.chosen);
    const next = now < 0 ? (by > 0 ? 0 : this.lanes.length - 1) : Math.min(this.lanes.length - 1, Math.max(0, now + by));
    this.onChoose(this.lanes[next], { scroll: true });
  }

  listen() {
    this.plot.on("plotly_relayout", (change) => {
      const [x0, x1] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (x0 !== undefined && x1 !== undefined) this.zoomTo(Number(x0), Number(x1));
    });
    this.box.addEventListener("scroll", () => this.redrawSoon());
    this.box.addEventListener("mousemove", (event) => this.hover(event));
    this.box.addEventListener("mouseleave", () => {
      this.tip.hidden = true;
      this.join([]);
    });
    let pressed = null;
    this.box.addEventListener("mousedown", (event) => { pressed = event; this.tip.hidden = true; }, true);
    window.addEventListener("mouseup", (event) => {
      const still = pressed && event.button === 0 && Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) < 4;
      pressed = null;
      const hit = still && this.under(event);
      if (still && event.detail === 2) this.reset();
      else if (hit && hit.row.lane) this.onChoose(hit.row.lane, { scroll: false });
    }, true);
    this.box.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const hit = this.under(event);
      this.zoomBy(Math.exp((event.deltaY || event.deltaX) * 0.002), (hit && hit.at) ?? undefined);
    }, { passive: false });
    const keys = {
      "+": () => this.zoomBy(0.5), "=": () => this.zoomBy(0.5), "-": () => this.zoomBy(2), 0: () => this.reset(),
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), ArrowUp: () => this.step(-1), ArrowDown: () => this.step(1),
      Enter: () => this.chosen !== null && this.zoomToLanes([this.model.byStream.get(this.chosen)]),
    };
    this.box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    new ResizeObserver(() => this.box.clientWidth !== this.view.width && this.redrawSoon()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redrawSoon());
    const click = (id, action) => document.getElementById(id).addEventListener("click", action);
    click("zoom-in", () => this.zoomBy(0.5));
    click("zoom-out", () => this.zoomBy(2));
    click("zoom-reset", () => this.reset());
    click("save-image", () => Plotly.downloadImage(this.plot, { format: "png", scale: 2, width: this.view.width, height: this.view.height, filename: "conchart-lanes" }));
    const heights = document.getElementById("lane-height");
    heights.value = String(this.laneHeight);
    heights.addEventListener("change", () => {
      this.laneHeight = Number(heights.value);
      this.show(this.lanes);
    });
  }
}
