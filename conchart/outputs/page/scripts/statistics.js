/* How times are distributed, by server; and what else sums up the connections shown: a range, the capture over time. */

import { tickStep } from "./axis.js";
import { themeColours } from "./chart.js";
import { brief, clip, count, el, exact, plain, plural, shortly, unitFor } from "./format.js";
import { Range, named, oneEach } from "./range.js";
import { inOrder, nearestRank } from "./ranks.js";
import { seriesFigure } from "./series.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {{key: string, title: string, from: ArrayLike<number>, value: (row: number) => number}} Measure durations of rows, by lane; NaN where there is none */
/** @typedef {{title: string, sorted: Float64Array}} Sample */

/* Curves in one chart. */
const MOST_SAMPLES = 6;
/* Steps of a curve: more than pixels can show. */
const MOST_STEPS = 600;
/* Columns of a histogram in a decade. */
const PER_DECADE = 10;
/* Not the colours of the phases: Paul Tol's bright set, which the colour-blind can tell apart. */
const SAMPLE_COLOURS = ["#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377"];
const PERCENTS = [50, 95, 99];
/* Pages with fewer connections show each of them; what sums them up is folded. */
const FEW_CONNECTIONS = 20;
const CONFIG = { displayModeBar: false, doubleClick: false, showTips: false };

/**
 * What can be looked at: of whole requests, handshakes and connections, and of each kind of phase.
 * @param {Model} model
 * @returns {Measure[]}
 */
export function measuresOf(model) {
  const { exchanges, handshakes, lanes } = model.tables;
  const valueOf = (/** @type {import("./decode.js").Column} */ column) => (/** @type {number} */ row) => (column.valid && !column.valid[row] ? NaN : column.values[row]);
  const [request, wait, transfer] = ["request_ns", "wait_ns", "transfer_ns"].map((name) => valueOf(exchanges.column(name)));
  const duration = lanes.values("duration");
  const { from, start, end, kind } = model.phases;
  return [
    ...(exchanges.length ? [
      { key: "wait", title: "Wait of a request", from: model.offsets.exchanges, value: wait },
      { key: "request", title: "Request: first byte to last of its response", from: model.offsets.exchanges, value: (/** @type {number} */ row) => request(row) + wait(row) + transfer(row) },
    ] : []),
    ...(handshakes.length ? [{ key: "handshake", title: "TLS handshake, until ready", from: model.offsets.handshakes, value: valueOf(handshakes.column("ready_ns")) }] : []),
    { key: "connection", title: "Connection: first packet to last", from: oneEach(model.count), value: (row) => duration[row] },
    ...model.kinds.map(({ name, title }, k) => ({ key: `phase-${name}`, title: `Phase: ${title}`, from, value: (/** @type {number} */ row) => (kind[row] === k && end[row] > start[row] ? end[row] - start[row] : NaN) }))
      .filter((_, k) => model.costs[k].some(Boolean)),
  ];
}

/**
 * The durations of some lanes, sorted.
 * @param {Measure} measure
 * @param {ArrayLike<number>} lanes
 * @param {Float64Array[]} besides durations of connections that are no lanes
 */
export function sample({ from, value }, lanes, besides = /** @type {Float64Array[]} */ ([])) {
  let most = besides.reduce((sum, one) => sum + one.length, 0);
  for (let n = 0; n < lanes.length; n += 1) most += from[lanes[n] + 1] - from[lanes[n]];
  const values = new Float64Array(most);
  let length = 0;
  for (let n = 0; n < lanes.length; n += 1) {
    const last = from[lanes[n] + 1];
    for (let row = from[lanes[n]]; row < last; row += 1) {
      const ns = value(row);
      if (!Number.isNaN(ns)) values[length++] = ns;
    }
  }
  for (const one of besides) {
    values.set(one, length);
    length += one.length;
  }
  return inOrder(values.subarray(0, length));
}

/**
 * Which steps of an empirical distribution are drawn: all, or as many as there are pixels, the first and the last with them.
 * @param {number} length
 * @param {number} most
 */
export function stepsDrawn(length, most) {
  if (length <= most) return Array.from({ length }, (_, i) => i);
  return Array.from({ length: most }, (_, i) => Math.floor((i * (length - 1)) / (most - 1)));
}

/**
 * How many of some values lie in each column of a histogram, whose columns are as wide as each other to the eye.
 * @param {ArrayLike<number>} sorted
 * @param {number} low number of the first column
 * @param {number} columns
 */
export function histogram(sorted, low, columns) {
  const counts = new Uint32Array(columns);
  for (let i = 0; i < sorted.length; i += 1) counts[Math.max(0, Math.min(columns - 1, columnOf(sorted[i]) - low))] += 1;
  return counts;
}

/**
 * The column of a value; 0, which has no logarithm, is with the least.
 * @param {number} ns
 */
const columnOf = (ns) => Math.floor(Math.log10(Math.max(1, ns)) * PER_DECADE + 1e-9);

/* Decades below which marks have equal steps: in half of one, 1, 2 and 5 may leave a single mark. */
const NARROW = 0.8;
const MOST_MARKS = 6;

/**
 * Marks at 1, 10, 100 of each unit; where that leaves few of them, at 2 and 5 too, or in equal steps.
 * @param {number} low
 * @param {number} high
 */
export function decades(low, high) {
  const values = [];
  if (high - low < NARROW) {
    const [from, to] = [10 ** low, 10 ** high];
    const step = tickStep(to - from, MOST_MARKS, false);
    const unit = unitFor(to);
    const decimals = Math.max(0, Math.ceil(Math.log10(unit.ns / step) - 1e-9));
    for (let i = Math.ceil(from / step); i * step <= to; i += 1) values.push(i * step);
    return { tickvals: values.map(Math.log10), ticktext: values.map((ns) => `${(ns / unit.ns).toFixed(decimals)}\u00a0${unit.name}`) };
  }
  for (let power = Math.floor(low); power <= high; power += 1) for (const step of high - low > 3 ? [1] : [1, 2, 5]) values.push(step * 10 ** power);
  return { tickvals: values.map(Math.log10), ticktext: values.map((ns) => `${Math.round(ns / unitFor(ns).ns)}\u00a0${unitFor(ns).name}`) };
}

/**
 * @param {number} rank
 * @param {number} length
 */
const percentOf = (rank, length) => `${Number(((100 * (rank + 1)) / length).toPrecision(4))} %`;

/**
 * What share of a sample takes up to how long.
 * @param {Sample} sample
 * @param {string} color
 * @param {number} low where the axis begins
 */
function curve({ title, sorted }, color, low) {
  const at = (/** @type {number} */ ns) => Math.max(low, Math.log10(Math.max(1, ns)));
  const ranks = stepsDrawn(sorted.length, MOST_STEPS);
  return {
    type: "scatter", mode: "lines", name: title, line: { shape: "hv", color, width: 2, simplify: false },
    x: [at(sorted[0]), ...ranks.map((rank) => at(sorted[rank]))], y: [0, ...ranks.map((rank) => (100 * (rank + 1)) / sorted.length)],
    customdata: ["", ...ranks.map((rank) => `${percentOf(rank, sorted.length)} take ${exact(sorted[rank])} or less`)],
    hovertemplate: `${title}<br>%{customdata}<extra></extra>`,
  };
}

/**
 * How many of a sample take how long.
 * @param {Sample} sample
 * @param {string} color
 * @param {number} first
 * @param {number} number
 */
function columns({ title, sorted }, color, first, number) {
  const counts = Array.from(histogram(sorted, first, number));
  const edge = (/** @type {number} */ i) => brief(10 ** ((first + i) / PER_DECADE));
  return {
    type: "bar", name: title, marker: { color, line: { width: 0 } }, width: 1 / PER_DECADE,
    x: counts.map((_, i) => (first + i + 0.5) / PER_DECADE), y: counts,
    customdata: counts.map((n, i) => `${count(n)} from ${edge(i)} to ${edge(i + 1)}`),
    hovertemplate: `${title}<br>%{customdata}<extra></extra>`,
  };
}

/**
 * The columns of the least value and of the most.
 * @param {Sample[]} samples
 */
export function distributionSpan(samples) {
  const least = samples.reduce((low, { sorted }) => Math.min(low, sorted.find((ns) => ns > 0) ?? Infinity), Infinity);
  const most = samples.reduce((high, { sorted }) => Math.max(high, sorted[sorted.length - 1]), 1);
  return { first: columnOf(Math.min(least, most)), last: columnOf(most) };
}

/**
 * What plotly needs to draw samples.
 * @param {Sample[]} samples none is empty
 * @param {boolean} asColumns a histogram rather than the share of values up to each
 * @param {number} width
 */
export function distributionFigure(samples, asColumns, width) {
  const colours = themeColours();
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: colours.ink };
  const { first, last } = distributionSpan(samples);
  const [low, high] = [first / PER_DECADE, (last + 1) / PER_DECADE];
  const plainly = samples.map(({ title, sorted }) => ({ title: plain(title), sorted }));
  const traces = plainly.map((one, i) => (asColumns ? columns(one, SAMPLE_COLOURS[i], first, last - first + 1) : curve(one, SAMPLE_COLOURS[i], low)));
  const title = (/** @type {string} */ text) => ({ text, standoff: 8, font: { ...font, color: colours.soft } });
  return {
    traces,
    layout: {
      width, height: 340, margin: { l: 64, r: 28, t: 10, b: 44 }, paper_bgcolor: colours.paper, plot_bgcolor: colours.paper, font, showlegend: false, barmode: "stack", bargap: 0,
      dragmode: "zoom", hovermode: "closest", hoverlabel: { bgcolor: colours.panel, bordercolor: colours.line, font, namelength: -1 },
      xaxis: { type: "linear", range: [low - 0.02, high + 0.02], tickmode: "array", ...decades(low, high), gridcolor: colours.line, zeroline: false, tickangle: 0, title: title("time, on a logarithmic scale") },
      yaxis: { range: asColumns ? undefined : [0, 101], rangemode: "tozero", ticksuffix: asColumns ? "" : " %", gridcolor: colours.line, zeroline: false, fixedrange: true, title: title(asColumns ? "how many" : "take so long or less") },
    },
  };
}

/* While somebody zooms or pans, the lanes go first: the charts below follow when nothing has changed for so long, in ms. */
const RESTED = 120;

/** A chart that is drawn when it comes into view, and again when what it shows has changed. */
class Drawing {
  /**
   * @param {HTMLElement} plot
   * @param {() => void} draw
   */
  constructor(plot, draw) {
    this.plot = plot;
    this.draw = draw;
    this.width = plot.clientWidth;
    [this.stale, this.visible, this.resting] = [true, false, 0];
    new IntersectionObserver((entries) => {
      this.visible = entries[entries.length - 1].isIntersecting;
      this.drawSoon();
    }, { rootMargin: "200px" }).observe(plot);
    new ResizeObserver(() => plot.clientWidth !== this.width && this.change()).observe(plot);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.change());
  }

  change() {
    this.stale = true;
    this.drawSoon();
  }

  drawSoon() {
    if (!this.visible || !this.stale) return;
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => {
      Object.assign(this, { stale: false, width: this.plot.clientWidth });
      this.draw();
    }, RESTED);
  }
}

/** The chart of distributions, what is chosen for it, and its percentiles. */
class Distributions {
  /**
   * @param {Model} model
   * @param {ArrayLike<number>} filtered
   */
  constructor(model, filtered) {
    this.model = model;
    this.filtered = filtered;
    this.measures = measuresOf(model);
    /** @type {HTMLElement} */
    this.plot = named("distribution");
    /** @type {HTMLSelectElement} */
    this.measure = named("distribution-measure");
    /** @type {HTMLSelectElement} */
    this.server = named("distribution-server");
    /** @type {HTMLInputElement} */
    this.columns = named("distribution-histogram");
    /** @type {HTMLTableElement} */
    this.table = named("distribution-table");
    /** @type {HTMLElement} */
    this.note = named("distribution-note");
    for (const { key, title } of this.measures) this.measure.append(el("option", { value: key }, title));
    const groups = new Set(model.group);
    for (const group of groups) this.server.append(el("option", { value: group }, clip(this.name(group), 60)));
    this.server.value = groups.size > MOST_SAMPLES ? "all" : "each";
    this.drawing = new Drawing(this.plot, () => this.draw());
    for (const control of [this.measure, this.server, this.columns, named("distribution-curve")]) control.addEventListener("change", () => this.drawing.change());
  }

  /** @param {number} group */
  name(group) {
    const { endpoint: address, title } = this.model.groups[group];
    return title ? `${address} ${title}` : address;
  }

  /** @param {ArrayLike<number>} filtered */
  show(filtered) {
    this.filtered = filtered;
    this.drawing.change();
  }

  /**
   * The samples chosen: of each server, of all together, or of one.
   * @returns {Sample[]}
   */
  samples() {
    const { model, filtered } = this;
    const measure = this.measures[this.measure.selectedIndex];
    /** @type {Map<number | null, Float64Array>} */
    const left = model.left?.counts(filtered) ? model.left.durations(measure.key) : new Map();
    if (this.server.value === "all") return [{ title: left.size ? "all" : "all shown", sorted: sample(measure, filtered, [...left.values()]) }];
    /** @type {Map<number, number[]>} */
    const groups = new Map();
    for (let n = 0; n < filtered.length; n += 1) {
      const lane = filtered[n];
      const members = groups.get(model.group[lane]);
      if (members) members.push(lane);
      else groups.set(model.group[lane], [lane]);
    }
    const chosen = [...groups].filter(([group]) => this.server.value === "each" || Number(this.server.value) === group);
    return chosen.map(([group, lanes]) => ({ title: this.name(group), sorted: sample(measure, lanes, [left.get(group) ?? new Float64Array()]) }));
  }

  draw() {
    const all = this.samples().filter(({ sorted }) => sorted.length).sort((a, b) => b.sorted.length - a.sorted.length);
    const samples = all.slice(0, MOST_SAMPLES);
    const { traces, layout } = distributionFigure(samples, this.columns.checked, this.plot.clientWidth);
    this.tell(samples);
    const besides = this.model.left?.counts(this.filtered) ? " What the page does not draw is counted with an error of 1 % at most." : "";
    this.note.textContent = (all.length > samples.length ? `Of ${plural(all.length, "server")}, those with the most are shown: choose one to see it.` : samples.length ? "" : "None of the connections shown has any.") + besides;
    return Plotly.react(this.plot, traces, layout, CONFIG);
  }

  /** @param {Sample[]} samples */
  tell(samples) {
    const time = (/** @type {number} */ ns) => el("td", { class: "n", title: exact(ns) }, brief(ns));
    this.table.tBodies[0].replaceChildren(...samples.map(({ title, sorted }, i) => el("tr", {},
      el("th", { scope: "row" }, el("span", { class: "swatch", style: `--fill:${SAMPLE_COLOURS[i]}` }), clip(title, 60)),
      el("td", { class: "n" }, count(sorted.length)), PERCENTS.map((percent) => time(nearestRank(sorted, percent))), time(sorted[sorted.length - 1]))));
  }
}

/** The capture over time, on the axis of the lanes. */
class OverTime {
  /**
   * @param {Model} model
   * @param {import("./lanes.js").Lanes} lanes
   */
  constructor(model, lanes) {
    this.model = model;
    this.lanes = lanes;
    this.listening = false;
    /** @type {PlotlyElement} */
    this.plot = named("series");
    /** @type {HTMLElement} */
    this.note = named("series-note");
    this.drawing = new Drawing(this.plot, () => this.draw());
  }

  async draw() {
    const { model, lanes } = this;
    const { traces, layout, length } = seriesFigure(model, lanes.filtered, lanes.view);
    this.note.textContent = `Each bar is ${shortly(length)}`;
    await Plotly.react(this.plot, traces, layout, CONFIG);
    if (!this.listening) this.listen();
    this.listening = true;
  }

  /* Dragging here zooms the lanes, which are followed. */
  listen() {
    this.plot.on("plotly_relayout", (change) => {
      const [x0, x1] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (x0 !== undefined && x1 !== undefined) this.lanes.zoomTo(Number(x0), Number(x1));
    });
    this.plot.on("plotly_doubleclick", () => this.lanes.reset());
  }
}

/** What sums up the connections shown. */
export class Statistics {
  /**
   * @param {Model} model
   * @param {import("./lanes.js").Lanes} lanes
   */
  constructor(model, lanes) {
    for (const id of ["over-time", "distributions"]) named(id).open = model.count >= FEW_CONNECTIONS;
    this.range = new Range(model, lanes);
    this.overTime = new OverTime(model, lanes);
    this.distributions = new Distributions(model, lanes.filtered);
    this.show(lanes.filtered);
  }

  /**
   * Other connections are shown.
   * @param {ArrayLike<number>} filtered
   */
  show(filtered) {
    this.range.show();
    this.distributions.show(filtered);
    this.follow();
  }

  /** Another part of the time is shown. */
  follow() {
    this.range.follow();
    this.overTime.drawing.change();
  }
}
