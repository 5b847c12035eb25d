/* Geometry of the swimlanes and what plotly is given to draw: only what is in view, so that thousands of lanes stay quick.
   The vertical axis is in pixels from the top of all lanes, the horizontal one in nanoseconds since the first packet. */

const MARGIN = { top: 46, bottom: 6, right: 14 };
const GROUP_HEIGHT = 26;
const MIN_SPAN = 100;
const MAX_PACKETS_IN_VIEW = 6000;

/* One row per group heading and lane, with its place; groups without a lane are left out. */
function layRows(groups, lanes, laneHeight) {
  const placed = [];
  let top = 0;
  let group = -1;
  const add = (row, height) => {
    placed.push({ ...row, top, height });
    top += height;
  };
  for (const lane of lanes) {
    if (lane.group !== group) {
      group = lane.group;
      if (placed.length) top += 8;
      add({ group: groups[group], size: lanes.reduce((n, other) => n + (other.group === group), 0) }, GROUP_HEIGHT);
    }
    add({ lane }, laneHeight);
  }
  return { rows: placed, height: top };
}

/* The row at a vertical position, or undefined. */
function rowAt(rows, y) {
  let low = 0;
  let high = rows.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (y < rows[middle].top) high = middle - 1;
    else if (y >= rows[middle].top + rows[middle].height) low = middle + 1;
    else return rows[middle];
  }
  return undefined;
}

/* Index of the first phase, or stall, of a lane that ends after `at`. */
function firstAfter(stretches, at) {
  let low = 0;
  let high = stretches.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (stretches[middle].end > at) high = middle;
    else low = middle + 1;
  }
  return low;
}

const STEPS = [1, 2, 5];

/* Marks of the time axis, in the unit that suits what is in view; far from the start they count from a round instant. */
function timeAxis(from, to, width) {
  const span = to - from;
  const room = Math.max(2, Math.floor(width / 95));
  let step = 1;
  for (let i = 0; step * room < span; i += 1) step = STEPS[i % 3] * 10 ** Math.floor(i / 3);
  const unit = unitFor(step >= 1e9 ? step : Math.max(1, span / 20));
  const decimals = Math.max(0, Math.ceil(Math.log10(unit.ns / step) - 1e-9));
  const far = Math.abs(from) > span * 200;
  const coarse = 10 ** Math.ceil(Math.log10(span) + 1);
  const base = far ? Math.floor(from / coarse) * coarse : 0;
  const values = [];
  for (let i = Math.ceil(from / step); i * step <= to; i += 1) values.push(i * step || 0);
  return {
    tickvals: values,
    ticktext: values.map((at) => {
      const [whole, rest] = ((at - base) / unit.ns).toFixed(decimals).split(".");
      return rest ? `${grouped(whole)}.${rest}` : grouped(whole);
    }),
    title: far ? `${unit.name} after ${exact(base)} since the start of the capture` : `${unit.name} since the start of the capture`,
  };
}

/* How far a phase's bar stays from the edges of its lane, as shares of its height. */
const phaseInset = (row, kind) => (kind.name === "idle" ? [0.36, 0.36] : row.height < 12 ? [0.06, 0.06] : [0.14, 0.14]);
/* What a wait consists of lies inside its bar. */
const stepInset = (row) => (row.height < 12 ? [0.25, 0.4] : [0.32, 0.38]);

/* Rectangles by kind of phase, or of step, as outlines that plotly fills. Those too narrow to be seen are drawn
   together, in the colour of the longest of them. */
function collectBars(rows, view, kinds, pixel, stretchesOf, inset) {
  const bars = kinds.flatMap((kind) => [{ kind, inferred: false, x: [], y: [] }, { kind, inferred: true, x: [], y: [] }]);
  const add = (row, phase, start, end) => {
    const kind = kinds[phase.kind];
    const bar = bars[2 * phase.kind + phase.inferred];
    const [above, below] = inset(row, kind);
    const [top, bottom] = [row.top + row.height * above, row.top + row.height * (1 - below)];
    const right = Math.max(end, start + pixel);
    bar.x.push(start, right, right, start, start, null);
    bar.y.push(top, top, bottom, bottom, top, null);
  };
  const [from, to] = [view.x0 - (view.x1 - view.x0), view.x1 + (view.x1 - view.x0)];
  for (const row of rows) {
    const phases = stretchesOf(row.lane);
    let longest = null;
    let start = 0;
    for (let i = firstAfter(phases, from); i < phases.length && phases[i].start < to; i += 1) {
      const phase = phases[i];
      if (longest === null && phase.duration >= pixel) add(row, phase, Math.max(phase.start, from), Math.min(phase.end, to));
      else {
        if (longest === null) start = phase.start;
        if (longest === null || phase.duration > longest.duration) longest = phase;
        const next = phases[i + 1];
        if (!next || phase.end - start >= pixel || next.duration >= pixel || next.start > phase.end) {
          add(row, longest, start, phase.end);
          longest = null;
        }
      }
    }
  }
  return bars.filter((bar) => bar.x.length);
}

function barTraces(bars, prefix) {
  return bars.map(({ kind, inferred, x, y }) => {
    const striped = inferred || kind.hatched;
    return {
      type: "scatter", mode: "none", fill: "toself", hoverinfo: "skip", showlegend: false, name: prefix + kind.name, x, y,
      line: { simplify: false },
      fillcolor: kind.colour,
      ...(striped ? { fillpattern: { shape: "/", fillmode: "replace", bgcolor: kind.colour, fgcolor: kind.hatched ? "#444" : "rgba(255,255,255,.85)", size: 6, solidity: 0.28 } } : {}),
    };
  });
}

/* A line below the bars where a lane was stalled, one outline for all; those too narrow to be seen apart become one. */
function stallTraces(rows, view, pixel, colours) {
  const [x, y] = [[], []];
  const [from, to] = [view.x0 - (view.x1 - view.x0), view.x1 + (view.x1 - view.x0)];
  for (const row of rows) {
    const { stalls } = row.lane;
    const [top, bottom] = [row.top + row.height * (row.height < 12 ? 0.7 : 0.86), row.top + row.height * 0.97];
    for (let i = firstAfter(stalls, from); i < stalls.length && stalls[i].start < to; i += 1) {
      const start = Math.max(stalls[i].start, from);
      let end = Math.max(stalls[i].end, start + pixel);
      while (i + 1 < stalls.length && stalls[i + 1].end - end < pixel) {
        i += 1;
        end = Math.max(end, stalls[i].end);
      }
      const right = Math.min(end, to);
      x.push(start, right, right, start, start, null);
      y.push(top, top, bottom, bottom, top, null);
    }
  }
  if (!x.length) return [];
  return [{ type: "scatter", mode: "none", fill: "toself", hoverinfo: "skip", showlegend: false, name: "stalled", x, y, line: { simplify: false }, fillcolor: colours.ink }];
}

/* Triangles for packets: up from the client, down from the server; what was sent again in red. */
function packetTraces(rows, view, colours) {
  const marks = { up: [], down: [], odd: [] };
  let seen = 0;
  for (const row of rows) {
    if (row.height < 12) continue;
    for (const packet of row.lane.packets) {
      if (packet.at < view.x0 || packet.at > view.x1) continue;
      seen += 1;
      marks[packet.mark === "retransmit" ? "odd" : packet.up ? "up" : "down"].push([packet.at, row.top + row.height * (packet.up ? 0.88 : 0.12), packet.up]);
    }
  }
  if (seen > MAX_PACKETS_IN_VIEW) return { traces: [], hidden: seen };
  const trace = (points, color, size) => ({
    type: "scatter", mode: "markers", hoverinfo: "skip", showlegend: false, x: points.map((p) => p[0]), y: points.map((p) => p[1]),
    marker: { symbol: points.map((p) => (p[2] ? "triangle-up" : "triangle-down")), size, color, line: { width: 0 } },
  });
  return {
    hidden: 0,
    traces: [trace(marks.up, colours.ink, 7), trace(marks.down, colours.ink, 7), trace(marks.odd, colours.bad, 9)].filter((t) => t.x.length),
  };
}

function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const pick = (name) => style.getPropertyValue(`--${name}`).trim();
  return { paper: pick("paper"), panel: pick("panel"), ink: pick("ink"), soft: pick("soft"), line: pick("line"), accent: pick("accent"), bad: pick("bad") };
}

/* Everything plotly needs for what is in view: {x0, x1} ns, {top} px scrolled, {width, height} px of the box. */
function figure(model, rows, view, chosen) {
  const colours = themeColours();
  const left = view.width < 900 ? 150 : 210;
  const inner = { width: Math.max(50, view.width - left - MARGIN.right), height: view.height - MARGIN.top - MARGIN.bottom };
  const visible = rows.filter((row) => row.top + row.height >= view.top && row.top <= view.top + inner.height);
  const lanes = visible.filter((row) => row.lane);
  const pixel = (view.x1 - view.x0) / inner.width;
  const axis = timeAxis(view.x0, view.x1, inner.width);
  const packets = model.hasPackets ? packetTraces(lanes, view, colours) : { traces: [], hidden: 0 };
  const labelled = lanes.filter((row) => row.height >= 12);
  const room = Math.floor((left - 14) / 6.1);
  const band = (row, color) => ({ type: "rect", xref: "paper", yref: "y", x0: 0, x1: 1, y0: row.top, y1: row.top + row.height, line: { width: 0 }, fillcolor: color, layer: "below" });
  const headings = visible.filter((row) => row.group);
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12, color: colours.ink };
  return {
    inner: { left, top: MARGIN.top, ...inner },
    hiddenPackets: packets.hidden,
    traces: [
      ...barTraces(collectBars(lanes, view, model.kinds, pixel, (lane) => lane.phases, phaseInset), ""),
      ...barTraces(collectBars(lanes, view, model.steps, pixel, (lane) => lane.splits, stepInset), "inside wait: "),
      ...stallTraces(lanes, view, pixel, colours), ...packets.traces,
    ],
    layout: {
      width: view.width, height: view.height, margin: { l: left, r: MARGIN.right, t: MARGIN.top, b: MARGIN.bottom, pad: 0 },
      paper_bgcolor: colours.paper, plot_bgcolor: colours.paper, showlegend: false, hovermode: false, dragmode: "zoom", font,
      xaxis: {
        type: "linear", range: [view.x0, view.x1], side: "top", tickmode: "array", tickvals: axis.tickvals, ticktext: axis.ticktext,
        title: { text: axis.title, standoff: 6, font: { ...font, color: colours.soft } }, gridcolor: colours.line, zeroline: false, ticks: "outside", ticklen: 4, tickcolor: colours.line, tickangle: 0,
      },
      yaxis: {
        range: [view.top + inner.height, view.top], fixedrange: true, tickmode: "array", showgrid: false, zeroline: false,
        tickvals: labelled.map((row) => row.top + row.height / 2),
        ticktext: labelled.map(({ lane }) => plain(clip(`#${lane.stream} ${lane.client}`, room))),
        tickfont: { ...font, size: 11 },
      },
      shapes: [
        ...headings.map((row) => ({ ...band(row, colours.panel) })),
        ...lanes.filter((row) => row.lane.stream === chosen).map((row) => ({ ...band(row, colours.accent), opacity: 0.22 })),
      ],
      annotations: headings.map((row) => ({
        xref: "paper", yref: "y", x: 0, y: row.top + row.height / 2, xanchor: "left", yanchor: "middle", xshift: 2 - left + 8, showarrow: false, align: "left",
        text: plain(clip(headingText(row), Math.floor(view.width / 7.2))), font: { ...font, size: 13, weight: 700 },
      })),
    },
  };
}

const headingText = ({ group, size }) => `${group.role === "server" ? "" : `${group.role}: `}${group.title ? `${group.title} · ` : ""}${group.endpoint} · ${plural(size, "connection")}`;
