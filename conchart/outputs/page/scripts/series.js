/* The capture over time, below the lanes and on their axis: how much is open, how much begins, how long it waits. */

import { clockTime, tickStep, timeAxis } from "./axis.js";
import { MARGIN, marginLeft, themeColours } from "./chart.js";
import { density } from "./detail.js";
import { count, exact, plural, shortly } from "./format.js";
import { countPer, eventsOf, oneEach } from "./range.js";
import { found, rankOf } from "./ranks.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {{name: "open" | "opened" | "handshakes" | "requests" | "waits", title: string, unit: string, noun: string, colour: string}} Panel */
/** @typedef {{starts: number[], middles: number[], seconds: number[], length: number, when: (at: number) => string}} Places */
/** @typedef {{x0: number, length: number, parts: number}} Buckets equal parts of time; they begin at multiples of their length */

/* As many parts as can be told apart at a glance. */
const MOST_BUCKETS = 120;
/* A 95th percentile of fewer values says little. */
const FEW_VALUES = 20;
const PANEL = 66;
const BETWEEN = 14;
const BELOW = 44;
/* Marks of a vertical axis. */
const TICKS = 3;

/**
 * Parts of a round length, for what is in view of the time that there is.
 * @param {{x0: number, x1: number}} view
 * @param {number} end
 * @returns {Buckets}
 */
export function bucketsOf(view, end) {
  const length = tickStep(view.x1 - view.x0, MOST_BUCKETS, false);
  const first = Math.floor(Math.max(0, view.x0) / length);
  const after = Math.ceil(Math.min(end, view.x1) / length);
  return { x0: first * length, length, parts: Math.max(1, after - first) };
}

/**
 * Percentiles of values, by when they began.
 * @param {import("./range.js").Events} events
 * @param {ArrayLike<number>} values
 * @param {ArrayLike<number> | null} valid where there is a value
 * @param {ArrayLike<number>} lanes
 * @param {Buckets} buckets
 * @param {(lane: number) => number} shift
 * @param {number} percent
 */
export function percentilePer(events, values, valid, lanes, buckets, shift, percent) {
  const { x0, length, parts } = buckets;
  const isSet = events.valid && valid ? Uint8Array.from(valid, (there, i) => there & /** @type {ArrayLike<number>} */ (events.valid)[i]) : events.valid || valid;
  const sizes = countPer({ ...events, valid: isSet }, lanes, buckets, shift);
  const starts = new Uint32Array(parts + 1);
  sizes.forEach((size, part) => { starts[part + 1] = starts[part] + size; });
  const placed = starts.slice();
  const byPart = new Float64Array(starts[parts]);
  for (let n = 0; n < lanes.length; n += 1) {
    const zero = x0 + shift(lanes[n]);
    const last = events.from[lanes[n] + 1];
    for (let i = events.from[lanes[n]]; i < last; i += 1) {
      const part = Math.floor((events.at[i] - zero) / length);
      if (part >= 0 && part < parts && (!isSet || isSet[i])) byPart[placed[part]++] = values[i];
    }
  }
  const ranks = Array.from(sizes, (size, part) => (size ? found(byPart, starts[part], starts[part + 1], starts[part] + rankOf(percent, size)) : null));
  return { sizes, ranks };
}

/**
 * Everything over time, of some connections.
 * @param {Model} model
 * @param {ArrayLike<number>} lanes
 * @param {Buckets} buckets
 * @param {(lane: number) => number} shift
 */
export function overTime(model, lanes, buckets, shift) {
  const { x0, length, parts } = buckets;
  const alone = oneEach(model.count);
  // Each connection as one phase.
  const lives = { from: alone, start: model.opened, end: model.closed, kind: new Uint8Array(model.count), inferred: alone };
  const requests = eventsOf(model, "exchanges", "request");
  const waits = model.tables.exchanges.column("wait_ns");
  return {
    open: density(lives, Array.from(lanes), { x0, x1: x0 + parts * length }, parts, 1, shift)[0],
    opened: countPer({ from: alone, at: model.opened, valid: null }, lanes, buckets, shift),
    handshakes: countPer(eventsOf(model, "handshakes", "hello"), lanes, buckets, shift),
    requests: countPer(requests, lanes, buckets, shift),
    waits: percentilePer(requests, waits.values, waits.valid, lanes, buckets, shift, 95),
  };
}

/**
 * What is drawn one above the other; a capture without requests has none of theirs.
 * @param {Model} model
 * @param {import("./chart.js").Colours} colours
 * @returns {Panel[]}
 */
function panels(model, colours) {
  const colour = (/** @type {string} */ name) => /** @type {import("./model.js").Kind} */ (model.kinds.find((kind) => kind.name === name)).colour;
  const { handshakes, exchanges } = model.tables;
  /** @type {Panel[]} */
  const shown = [
    { name: "open", title: "Open", unit: "connections", noun: "connection", colour: colours.accent },
    { name: "opened", title: "New", unit: "connections/s", noun: "connection", colour: colour("syn") },
  ];
  if (handshakes.length) shown.push({ name: "handshakes", title: "Handshakes", unit: "begun/s", noun: "TLS handshake", colour: colour("tls") });
  if (exchanges.length) {
    shown.push({ name: "requests", title: "Requests", unit: "begun/s", noun: "request", colour: colour("request") });
    shown.push({ name: "waits", title: "Wait, p95", unit: "of those begun", noun: "request", colour: colour("wait") });
  }
  return shown;
}

/** @param {number} value */
const rate = (value) => (value >= 100 ? count(Math.round(value)) : String(Number(value.toPrecision(3))));

/**
 * A bar for each part of time. What is pointed at says its own words, not its place.
 * @param {Panel} panel
 * @param {Places} places
 * @param {number[]} heights
 * @param {string[]} words
 */
const barsOf = (panel, { middles, length }, heights, words) => ({
  type: "bar", x: middles, y: heights, width: length, marker: { color: panel.colour, line: { width: 0 } }, customdata: words, hoverinfo: "y", hovertemplate: "%{customdata}<extra></extra>",
});

/**
 * @param {Panel} panel
 * @param {ReturnType<typeof overTime>} data
 * @param {Places} places
 */
function traceOf(panel, data, places) {
  const { starts, middles, seconds, length, when } = places;
  if (panel.name === "open") {
    const levels = Array.from(data.open, (sum, i) => (sum * length) / (1e9 * seconds[i]));
    return barsOf(panel, places, levels, levels.map((level, i) => `${when(starts[i])} to ${when(starts[i] + length)}: ${rate(level)} open on average`));
  }
  if (panel.name !== "waits") {
    const counts = data[panel.name];
    const rates = Array.from(counts, (n, i) => n / seconds[i]);
    return barsOf(panel, places, rates, rates.map((value, i) => `${plural(counts[i], panel.noun)}, ${rate(value)}/s`));
  }
  const { sizes, ranks } = data.waits;
  return {
    type: "scatter", mode: "lines+markers", x: middles, y: ranks, connectgaps: false, line: { color: panel.colour, width: 1 },
    marker: { color: panel.colour, size: 5, opacity: Array.from(sizes, (n) => (n < FEW_VALUES ? 0.35 : 1)) },
    customdata: ranks.map((ns, i) => (ns === null ? "" : `p95 ${exact(ns)} of ${plural(sizes[i], panel.noun)}`)), hoverinfo: "y", hovertemplate: "%{customdata}<extra></extra>",
  };
}

/**
 * What plotly needs to draw everything over time.
 * @param {Model} model
 * @param {ArrayLike<number>} lanes
 * @param {import("./chart.js").View} view
 */
export function seriesFigure(model, lanes, view) {
  const colours = themeColours();
  const { x0, x1, width, shift } = view;
  const end = model.closed.reduce((most, closed, lane) => Math.max(most, closed - shift(lane)), 1);
  const buckets = bucketsOf(view, end);
  const { length, parts } = buckets;
  const data = overTime(model, lanes, buckets, shift);
  const starts = Array.from({ length: parts }, (_, i) => buckets.x0 + i * length);
  const middles = starts.map((start) => start + length / 2);
  // At the edges, of the time that the capture has of them.
  const seconds = starts.map((start) => Math.max(1, Math.min(start + length, end) - start) / 1e9);
  const decimals = Math.max(0, Math.ceil(9 - Math.log10(length) - 1e-9));
  const when = view.axis === "utc" || view.axis === "local" ? (/** @type {number} */ at) => clockTime(at, model.calendar.startFor(at), view.axis, decimals).time : shortly;
  const shown = panels(model, colours);
  const inner = shown.length * PANEL + (shown.length - 1) * BETWEEN;
  const left = marginLeft(width);
  const axis = timeAxis(x0, x1, Math.max(50, width - left - MARGIN.right), view.axis, model.calendar);
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: colours.ink };
  /** @type {Record<string, any>} */
  const layout = {
    width, height: inner + BELOW + 8, margin: { l: left, r: MARGIN.right, t: 8, b: BELOW, pad: 0 }, paper_bgcolor: colours.paper, plot_bgcolor: colours.paper,
    font, showlegend: false, bargap: 0, dragmode: "zoom", hovermode: "x", hoversubplots: "axis", hoverlabel: { bgcolor: colours.panel, bordercolor: colours.line, font }, annotations: [],
    xaxis: {
      type: "linear", range: [x0, x1], tickmode: "array", tickvals: axis.tickvals, ticktext: axis.ticktext, title: { text: axis.title, standoff: 6, font: { ...font, color: colours.soft } },
      gridcolor: colours.line, zeroline: false, ticks: "outside", ticklen: 4, tickcolor: colours.line, tickangle: 0, anchor: `y${shown.length === 1 ? "" : shown.length}`,
      showspikes: true, spikemode: "across", spikethickness: 1, spikedash: "solid", spikecolor: colours.soft,
    },
  };
  const traces = shown.map((panel, i) => {
    const number = i ? String(i + 1) : "";
    const top = 1 - (i * (PANEL + BETWEEN)) / inner;
    const trace = traceOf(panel, data, { starts, middles, seconds, length, when });
    const most = trace.y.reduce((/** @type {number} */ high, value) => Math.max(high, value || 0), 0);
    const marks = panel.name !== "waits" ? null : most ? [0, 1, 2, 3].map((n) => n * tickStep(most, TICKS, false)) : [];
    layout[`yaxis${number}`] = {
      domain: [Math.max(0, top - PANEL / inner), top], range: [0, most * 1.08 || 1], fixedrange: true, gridcolor: colours.line, zeroline: false, anchor: "x", nticks: TICKS + 1, exponentformat: "SI", tickfont: { ...font, size: 11 },
      ...(marks ? { tickmode: "array", tickvals: marks, ticktext: marks.map((ns) => (ns ? shortly(ns) : "0")) } : {}),
    };
    layout.annotations.push({
      xref: "paper", yref: "paper", x: 0, y: top - PANEL / inner / 2, xanchor: "left", yanchor: "middle", xshift: 10 - left, align: "left", showarrow: false,
      text: `<b>${panel.title}</b><br>${panel.unit}`, font: { ...font, size: 11 },
    });
    return { ...trace, name: panel.title, xaxis: "x", yaxis: `y${number}` };
  });
  return { traces, layout, length };
}
