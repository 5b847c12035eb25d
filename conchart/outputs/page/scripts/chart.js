/* What plotly is given to draw: only what is in view, so that 200,000 connections stay quick.
   The vertical axis is in pixels from the top of all rows, the horizontal one in nanoseconds since the first packet, or,
   where lanes are aligned, since each connection's own. */

import { timeAxis } from "./axis.js";
import { bars, density, during, firstAfter } from "./detail.js";
import { clip, count, plain, plural } from "./format.js";
import { HEADING } from "./tree.js";

/** @typedef {import("./model.js").Kind} Kind */
/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./tree.js").Row} Row */
/**
 * @typedef {{x0: number, x1: number, top: number, width: number, height: number, shift: (lane: number) => number, axis: string, drag?: "zoom" | "select", range?: {x0: number, x1: number} | null}} View
 * @typedef {ReturnType<typeof themeColours>} Colours
 * @typedef {Row & {strip: number, most: number}} Strip a folded group
 */

export const MARGIN = { top: 46, bottom: 6, right: 14 };
export const MIN_SPAN = 100;
const MAX_PACKETS_IN_VIEW = 6000;
/* Width of a step in the outline of a folded group, in pixels. */
const PART = 3;

/**
 * How far a phase's bar stays from the edges of its lane, as shares of its height.
 * @param {Row} row
 * @param {Kind} kind
 * @returns {[number, number]}
 */
const phaseInset = (row, kind) => (kind.name === "idle" ? [0.36, 0.36] : row.height < 12 ? [0.06, 0.06] : [0.14, 0.14]);
/**
 * Where a stall is marked: over the lower edge of a bar.
 * @param {Row} row
 * @returns {[number, number]}
 */
const stallInset = (row) => (row.height < 12 ? [0.6, 0.04] : [0.7, 0.04]);
/**
 * What a wait consists of lies inside its bar.
 * @param {Row} row
 * @returns {[number, number]}
 */
const stepInset = (row) => (row.height < 12 ? [0.25, 0.4] : [0.32, 0.38]);

/* Boxes of one colour as a line without a gap, because plotly makes an element of the page for each piece of a line. It is
   drawn in steps, first across and then up or down: from box to box along their upper edges, from row to row beside the
   picture, and back there in the end, so that it encloses the boxes and nothing else. */
export class Outline {
  /** @param {number} aside an instant left of all that is in view */
  constructor(aside) {
    this.aside = aside;
    /** @type {number[]} */
    this.x = [];
    /** @type {number[]} */
    this.y = [];
    this.level = NaN;
  }

  /**
   * @param {number} left
   * @param {number} right
   * @param {number} top
   * @param {number} bottom
   */
  box(left, right, top, bottom) {
    const { x, y } = this;
    if (top !== this.level) {
      x.push(this.aside);
      y.push(top);
      this.level = top;
    }
    x.push(left, right);
    y.push(bottom, top);
  }

  /**
   * What plotly fills.
   * @param {string} name
   * @param {object} filled
   */
  drawn(name, filled) {
    const [x, y] = [[...this.x, this.aside], [...this.y, this.y[0]]];
    return { type: "scatter", mode: "none", fill: "toself", hoverinfo: "skip", showlegend: false, name, x, y, line: { shape: "hv", simplify: false }, ...filled };
  }
}

/* Outlines by kind, certain and inferred. */
class Outlines {
  /**
   * @param {Kind[]} kinds
   * @param {string} prefix
   * @param {View} view
   */
  constructor(kinds, prefix, view) {
    this.prefix = prefix;
    this.traces = kinds.flatMap((kind) => [{ kind, inferred: false, outline: new Outline(beside(view)) }, { kind, inferred: true, outline: new Outline(beside(view)) }]);
  }

  /**
   * @param {number} kind
   * @param {boolean | number} inferred
   * @param {number} left
   * @param {number} right
   * @param {number} top
   * @param {number} bottom
   */
  box(kind, inferred, left, right, top, bottom) {
    this.traces[2 * kind + Number(inferred)].outline.box(left, right, top, bottom);
  }

  drawn() {
    return this.traces.filter(({ outline }) => outline.x.length).map(({ kind, inferred, outline }) => outline.drawn(this.prefix + kind.name, {
      fillcolor: kind.colour,
      ...(inferred || kind.hatched ? { fillpattern: { shape: "/", fillmode: "replace", bgcolor: kind.colour, fgcolor: kind.hatched ? "#444" : "rgba(255,255,255,.85)", size: 6, solidity: 0.28 } } : {}),
    }));
  }
}

/**
 * What is drawn of times: that in view, and a quarter of it on either side, which dragging brings into view.
 * @param {View} view
 */
const around = ({ x0, x1 }) => ({ x0: x0 - (x1 - x0) / 4, x1: x1 + (x1 - x0) / 4 });
/**
 * An instant left of all that is drawn.
 * @param {View} view
 */
const beside = ({ x0, x1 }) => x0 - (x1 - x0) / 2;
/* Bars narrower than so many pixels are drawn together with their neighbours. */
const LEAST_BAR = 2;
/* Marks of trouble that are nearer to each other are one. */
const LEAST_APART = 4;

/**
 * @param {Outlines} outlines
 * @param {Row[]} rows
 * @param {View} view
 * @param {Model} model
 * @param {number} pixel
 */
function drawTracks(outlines, rows, view, model, pixel) {
  for (const row of rows) {
    bars(model.drawn, during(row.lanes, model, around(view), view.shift), around(view), LEAST_BAR * pixel, view.shift, (kind, inferred, start, end) => {
      const [above, below] = phaseInset(row, model.drawnKinds.kinds[kind]);
      outlines.box(kind, inferred, start, Math.max(end, start + pixel), row.top + row.height * above, row.top + row.height * (1 - below));
    });
  }
}

/**
 * Of a folded group: how many connections are in which phase, the phases of interest at the bottom.
 * @param {Outlines} outlines
 * @param {Strip[]} rows
 * @param {View} view
 * @param {Model} model
 * @param {number} width
 */
function drawStrips(outlines, rows, view, model, width) {
  const parts = Math.max(1, Math.round(width / PART));
  const step = (view.x1 - view.x0) / parts;
  for (const row of rows) {
    const counts = density(model.drawn, row.lanes, view, parts, model.drawnKinds.kinds.length, view.shift);
    const sums = new Float64Array(parts);
    for (const levels of counts) levels.forEach((level, i) => { sums[i] += level; });
    row.most = sums.reduce((most, sum) => Math.max(most, sum), 0);
    const bottom = row.top + row.height - 2;
    const scale = (row.strip - 4) / Math.max(1, row.most);
    const below = new Float64Array(parts);
    counts.forEach((levels, kind) => {
      // Neighbours of the same height are one box.
      const at = (/** @type {number} */ i) => [Math.round(2 * below[i] * scale) / 2, Math.round(2 * (below[i] + levels[i]) * scale) / 2];
      for (let i = 0; i < parts;) {
        const [low, high] = at(i);
        let end = i + 1;
        while (end < parts && at(end)[0] === low && at(end)[1] === high) end += 1;
        if (high > low) outlines.box(kind, false, view.x0 + i * step, view.x0 + end * step, bottom - high, bottom - low);
        i = end;
      }
      levels.forEach((level, i) => { below[i] += level; });
    });
  }
}

/**
 * What waits consist of, where the lanes are few enough to be looked at.
 * @param {Outlines} outlines
 * @param {Row[]} rows
 * @param {View} view
 * @param {Model} model
 * @param {number} pixel
 */
function drawSplits(outlines, rows, view, model, pixel) {
  for (const row of rows) for (const lane of within(row, view, model)) {
    const by = view.shift(lane);
    for (const { kind, start, end } of model.lane(lane).splits)
      if (end - by > view.x0 && start - by < view.x1) outlines.box(kind, false, start - by, Math.max(end - by, start - by + pixel), ...spanOf(row, stepInset(row)));
  }
}

/**
 * @param {Row} row
 * @param {[number, number]} inset
 * @returns {[number, number]}
 */
const spanOf = (row, [above, below]) => [row.top + row.height * above, row.top + row.height * (1 - below)];

const MAX_WITHIN = 200;
/**
 * The connections of a lane that are in view; of very many, none: they are too narrow for what they would show.
 * @param {Row} row
 * @param {View} view
 * @param {Model} model
 */
function within(row, view, model) {
  const inView = during(row.lanes, model, view, view.shift);
  return inView.length > MAX_WITHIN ? [] : inView;
}

/**
 * The lower edge of bars where a lane was stalled, in the colour of the stall, an outline for each; those too narrow to be
 * seen apart become one.
 * @param {Row[]} rows
 * @param {View} view
 * @param {Model} model
 * @param {number} pixel
 * @param {Colours} colours
 */
function stallTraces(rows, view, model, pixel, colours) {
  const { from, start, end, kind } = model.stalls;
  const { x0, x1 } = around(view);
  /** @type {Map<string, Outline>} */
  const outlines = new Map();
  for (const row of rows) {
    const [top, bottom] = spanOf(row, stallInset(row));
    for (const lane of during(row.lanes, model, { x0, x1 }, view.shift)) {
      const by = view.shift(lane);
      const last = from[lane + 1];
      for (let i = firstAfter(end, x0 + by, from[lane], last); i < last && start[i] - by < x1; i += 1) {
        const colour = model.stallKinds[kind[i]].colour || colours.ink;
        const left = Math.max(start[i] - by, x0);
        let right = Math.max(end[i] - by, left + pixel);
        while (i + 1 < last && end[i + 1] - by - right < pixel) {
          i += 1;
          right = Math.max(right, end[i] - by);
        }
        const outline = outlines.get(colour) || new Outline(beside(view));
        outlines.set(colour, outline);
        outline.box(left, Math.min(right, x1), top, bottom);
      }
    }
  }
  return [...outlines].map(([fillcolor, outline]) => outline.drawn("stalled", { fillcolor }));
}

/* Names of requests in view at once, and the least room for one, in letters; of a letter, its width in pixels. */
const MAX_NAMES = 80;
const LEAST_NAME = 5;
const LETTER = 5.8;
/* Letters of a name that may stand beside a bar that is too short for it. */
const MOST_BESIDE = 24;

/**
 * What a request asks for, in so many letters; of a long path its end tells more than its beginning. Empty where it is not known.
 * @param {Record<string, any>} exchange
 * @param {number} room
 */
export function requestName({ method, target }, room) {
  if (!target) return "";
  const path = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*(?=\/|$)/i, "") || "/";
  const name = method && method !== "GET" ? `${method} ${path}` : path;
  if (name.length <= room) return name;
  const last = path.replace(/\/$/, "").lastIndexOf("/");
  const end = `…${path.slice(last)}`;
  return last > 0 && end.length <= room ? end : clip(name, room);
}

/**
 * Requests by name, from where they begin until the next one on their lane.
 * @param {Row[]} rows
 * @param {View} view
 * @param {Model} model
 * @param {number} pixel
 * @param {Colours} colours
 */
function nameTraces(rows, view, model, pixel, colours) {
  /** @type {{x: number[], y: number[], text: string[]}} */
  const labels = { x: [], y: [], text: [] };
  if (!model.tables.exchanges) return [];
  for (const row of rows) {
    if (row.height < 16) continue;
    const lanes = within(row, view, model);
    for (let n = 0; n < lanes.length; n += 1) {
      const by = view.shift(lanes[n]);
      const until = n + 1 < lanes.length ? model.opened[lanes[n + 1]] - view.shift(lanes[n + 1]) : view.x1;
      const requests = model.lane(lanes[n]).exchanges.filter((x) => x.request !== null);
      for (let i = 0; i < requests.length && labels.x.length < MAX_NAMES; i += 1) {
        const left = Math.max(view.x0, requests[i].request - by);
        const right = Math.min(view.x1, i + 1 < requests.length ? requests[i + 1].request - by : until);
        const end = requests[i].request - by + requests[i].request_ns + requests[i].wait_ns + requests[i].transfer_ns;
        const letters = (/** @type {number} */ until) => Math.floor(((until - left) / pixel - 8) / LETTER);
        const room = Math.min(letters(right), Math.max(MOST_BESIDE, letters(end)));
        if (end < view.x0 || room < LEAST_NAME) continue;
        const name = requestName(requests[i], room);
        if (!name) continue;
        labels.x.push(left + 2 * pixel);
        labels.y.push(row.top + row.height / 2);
        labels.text.push(plain(name));
      }
    }
  }
  return labels.x.length ? [{ type: "scatter", mode: "text", hoverinfo: "skip", showlegend: false, name: "requests", ...labels, textposition: "middle right", textfont: { size: 10, color: colours.ink }, cliponaxis: true }] : [];
}

/**
 * How packets are marked: those that tell of trouble, and, where all are on the page, the others.
 * @type {Record<string, {colour: keyof Colours, size: number, up: string, down: string}>}
 */
const MARKS = {
  retransmit: { colour: "bad", size: 9, up: "triangle-up", down: "triangle-down" },
  out_of_order: { colour: "bad", size: 8, up: "triangle-up-open", down: "triangle-down-open" },
  gap: { colour: "bad", size: 8, up: "diamond-open", down: "diamond-open" },
  zero_window: { colour: "bad", size: 9, up: "x", down: "x" },
  other: { colour: "ink", size: 7, up: "triangle-up", down: "triangle-down" },
};

/**
 * Triangles for packets: up from the client, down from the server; what was sent again in red, a diamond before which
 * something is missing, a cross for a window of zero. Of lanes too flat for them, none; of too many at once, none, and how many.
 * @param {Row[]} rows
 * @param {View} view
 * @param {Model} model
 * @param {Colours} colours
 * @param {number} pixel
 */
function packetTraces(rows, view, model, colours, pixel) {
  const { packets } = model.tables;
  if (!packets || !packets.length) return { traces: [], hidden: 0 };
  const [at, up] = [packets.values("at"), packets.values("up")];
  // Seen from an end, those of one side overtake those of the other: they stay in the order in which they were captured.
  const captured = model.viewpoints?.captured.packets.at || at;
  const mark = packets.column("mark");
  /** @type {Map<string, {x: number[], y: number[], symbol: string[]}>} */
  const traces = new Map();
  let seen = 0;
  for (const row of rows) {
    // Of marks that would hide each other one is drawn.
    /** @type {Map<string, number>} */
    const drawn = new Map();
    const { reach } = model;
    for (const lane of during(row.lanes, model, { x0: view.x0 - reach, x1: view.x1 + reach }, view.shift)) {
      const by = view.shift(lane);
      const last = model.offsets.packets[lane + 1];
      for (let i = firstAfter(captured, view.x0 + by - 1 - reach, model.offsets.packets[lane], last); i < last && captured[i] - by <= view.x1 + reach; i += 1) {
        if (at[i] - by < view.x0 || at[i] - by > view.x1) continue;
        const name = mark.get(i) in MARKS ? mark.get(i) : "other";
        if (row.height < 12 && name === "other") continue;
        const place = `${name}${up[i]}`;
        if (name !== "other" && at[i] - by - (drawn.get(place) ?? -Infinity) < LEAST_APART * pixel) continue;
        drawn.set(place, at[i] - by);
        seen += 1;
        const trace = traces.get(name) || { x: [], y: [], symbol: [] };
        traces.set(name, trace);
        trace.x.push(at[i] - by);
        trace.y.push(row.top + row.height * (row.height < 12 ? 0.5 : up[i] ? 0.88 : 0.12));
        trace.symbol.push(MARKS[name][up[i] ? "up" : "down"]);
        if (seen > MAX_PACKETS_IN_VIEW) return { traces: [], hidden: countPackets(rows, view, model) };
      }
    }
  }
  return {
    hidden: 0,
    traces: [...traces].map(([name, { x, y, symbol }]) => ({
      type: "scatter", mode: "markers", hoverinfo: "skip", showlegend: false, name, x, y,
      marker: { symbol, size: MARKS[name].size, color: colours[MARKS[name].colour], line: { width: 0 } },
    })),
  };
}

/**
 * Packets of these rows in view.
 * @param {Row[]} rows
 * @param {View} view
 * @param {Model} model
 */
function countPackets(rows, view, { offsets, tables, viewpoints, opened, closed }) {
  const at = viewpoints?.captured.packets.at || tables.packets.values("at");
  let sum = 0;
  for (const row of rows) for (const lane of during(row.lanes, { opened, closed }, view, view.shift)) {
    const [by, first, last] = [view.shift(lane), offsets.packets[lane], offsets.packets[lane + 1]];
    sum += firstAfter(at, view.x1 + by, first, last) - firstAfter(at, view.x0 + by - 1, first, last);
  }
  return sum;
}

export function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const pick = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return { paper: pick("paper"), panel: pick("panel"), ink: pick("ink"), soft: pick("soft"), line: pick("line"), accent: pick("accent"), bad: pick("bad") };
}

/**
 * @param {Row} row
 * @param {Model} model
 */
const laneLabel = (row, model) => {
  const [first] = row.lanes;
  return row.lanes.length === 1 ? `#${model.streams[first]} ${model.owner(first, "client") || model.endpoint(first, "client")}` : `${model.fact(first, "client_ip")} · ${count(row.lanes.length)}`;
};

/**
 * Of an address, its end tells more than its beginning, where there is no room for both.
 * @param {string} label
 * @param {number} room
 */
function clipped(label, room) {
  const [number, address = "", ...words] = label.split(" ");
  return label.length > room && room < 20 && !words.length ? `${number} …${address.slice(number.length + 2 - room)}` : clip(label, room);
}

/** @param {Row} row */
const fold = (row) => (row.open ? "▾ " : "▸ ");

/**
 * @param {Row} row
 * @param {Model} model
 */
export function headingText(row, model) {
  if (row.kind === "client") return `${fold(row)}${row.ip} · ${plural(row.lanes.length, "connection")}`;
  const { role, title, endpoint } = model.groups[row.group];
  return `${row.open === undefined ? "" : fold(row)}${role === "server" ? "" : `${role}: `}${title ? `${title} · ` : ""}${endpoint} · ${plural(row.size ?? row.lanes.length, "connection")}`;
}

/**
 * Room for the labels, so that times stand below each other in all charts.
 * @param {number} width
 */
export const marginLeft = (width) => (width < 600 ? 92 : width < 900 ? 150 : 210);

/**
 * Everything plotly needs for what is in view: {x0, x1} ns, {top} px scrolled, {width, height} px of the box,
 * {shift} what is subtracted from a lane's times, {drag} what dragging does, {range} what was measured.
 * @param {Model} model
 * @param {Row[]} rows
 * @param {View} view
 * @param {number | null} chosen
 */
export function figure(model, rows, view, chosen) {
  const colours = themeColours();
  const left = marginLeft(view.width);
  const inner = { width: Math.max(50, view.width - left - MARGIN.right), height: view.height - MARGIN.top - MARGIN.bottom };
  const visible = rows.filter((row) => row.top + row.height >= view.top && row.top <= view.top + inner.height);
  const tracks = visible.filter((row) => row.kind === "track");
  const strips = /** @type {Strip[]} */ (visible.filter((row) => row.strip));
  const headings = visible.filter((row) => row.kind !== "track");
  const pixel = (view.x1 - view.x0) / inner.width;
  const axis = timeAxis(view.x0, view.x1, inner.width, view.axis, model.calendar);
  // Counted from its own start, each connection stands before any silence.
  const folds = view.axis === "own" ? [] : model.calendar.folds.filter((fold) => fold.at > view.x0 && fold.at < view.x1);
  const phases = new Outlines(model.drawnKinds.kinds, "", view);
  const steps = new Outlines(model.steps, "inside wait: ", view);
  drawTracks(phases, tracks, view, model, pixel);
  drawStrips(phases, strips, view, model, inner.width);
  if (model.steps.length) drawSplits(steps, tracks, view, model, pixel);
  const packets = packetTraces(tracks, view, model, colours, pixel);
  // Not those that would be cut off at the lower edge.
  const labelled = tracks.filter((row) => row.height >= 12 && row.top + row.height / 2 < view.top + inner.height - 1);
  const room = Math.floor((left - 14) / 6.1);
  const band = (/** @type {Row} */ row, /** @type {string} */ color, height = row.height) => ({ type: "rect", xref: "paper", yref: "y", x0: 0, x1: 1, y0: row.top, y1: row.top + height, line: { width: 0 }, fillcolor: color, layer: "below" });
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: colours.ink };
  const note = (/** @type {Row} */ row, /** @type {object} */ extra) => ({ xref: "paper", yref: "y", yanchor: "middle", showarrow: false, ...extra });
  return {
    inner: { left, top: MARGIN.top, ...inner },
    hiddenPackets: packets.hidden,
    traces: [...phases.drawn(), ...steps.drawn(), ...stallTraces(tracks, view, model, pixel, colours), ...nameTraces(tracks, view, model, pixel, colours), ...packets.traces],
    layout: {
      width: view.width, height: view.height, margin: { l: left, r: MARGIN.right, t: MARGIN.top, b: MARGIN.bottom, pad: 0 },
      paper_bgcolor: colours.paper, plot_bgcolor: colours.paper, showlegend: false, hovermode: false, dragmode: view.drag || "zoom", selectdirection: "h", selections: [], font,
      xaxis: {
        type: "linear", range: [view.x0, view.x1], side: "top", tickmode: "array", tickvals: axis.tickvals, ticktext: axis.ticktext,
        title: { text: axis.title, standoff: 6, font: { ...font, color: colours.soft } }, gridcolor: colours.line, zeroline: false, ticks: "outside", ticklen: 4, tickcolor: colours.line, tickangle: 0,
      },
      yaxis: {
        range: [view.top + inner.height, view.top], fixedrange: true, tickmode: "array", showgrid: false, zeroline: false,
        tickvals: labelled.map((row) => row.top + row.height / 2),
        ticktext: labelled.map((row) => plain(clipped(laneLabel(row, model), room))),
        ticklabeloverflow: "allow", // all fit, and Plotly need not measure them
        tickfont: { ...font, size: 11 },
      },
      shapes: [
        ...(view.range ? [{ type: "rect", xref: "x", yref: "paper", x0: view.range.x0, x1: view.range.x1, y0: 0, y1: 1, line: { width: 1, color: colours.accent }, fillcolor: colours.accent, opacity: 0.16, layer: "above" }] : []),
        ...folds.map((fold) => ({ type: "line", xref: "x", yref: "paper", x0: fold.at, x1: fold.at, y0: 0, y1: 1, line: { width: 1, color: colours.soft, dash: "dash" }, layer: "below" })),
        ...headings.filter((row) => row.kind === "server").map((row) => band(row, colours.panel, HEADING)),
        ...tracks.filter((row) => chosen !== null && row.lanes.includes(chosen)).map((row) => ({ ...band(row, colours.accent), opacity: 0.22 })),
      ],
      annotations: [
        ...folds.map((fold) => ({ xref: "x", yref: "paper", x: fold.at, y: 1, yanchor: "top", showarrow: false, text: `≈ ${fold.says}`, font: { ...font, size: 11, color: colours.soft } })),
        ...headings.map((row) => note(row, {
          x: 0, y: row.top + (row.kind === "server" ? HEADING : row.height) / 2, xanchor: "left", xshift: 2 - left + (row.kind === "server" ? 8 : 16), align: "left",
          text: plain(clip(headingText(row, model), row.kind === "server" ? Math.floor(view.width / 7.2) : room + 4)), font: { ...font, size: row.kind === "server" ? 13 : 11, weight: row.kind === "server" ? 700 : 400 },
        })),
        ...strips.filter((row) => row.kind === "server").map((row) => note(row, {
          x: 0, y: row.top + HEADING + row.strip / 2, xanchor: "left", xshift: 10 - left, align: "left",
          text: plain(`up to ${count(Math.ceil(row.most))} at once`), font: { ...font, size: 11, color: colours.soft },
        })),
      ],
    },
  };
}
