/* The lanes of both captures, each in its plot, on one scale: drawn anew when the window or the colours change. */

import { MARGIN, figure } from "./chart.js";
import { loadPlotly, readHead } from "./decode.js";
import { kindsDrawn, phasesDrawn } from "./drawn.js";
import { HEADING } from "./tree.js";

const [data] = await Promise.all([readHead(document), loadPlotly(document)]);
const LANE_HEIGHT = 20;

/**
 * What Python tells of a capture.
 * @typedef {import("./tree.js").Row} Row
 * @typedef {{stream: number, group: number, client: string, phases: number[][], stalls: number[][]}} Lane
 * @typedef {{plot: string, lanes: Lane[], groups: {endpoint: string, title: string, role: string, size: number}[]}} Side
 */

/**
 * Stretches of all lanes as columns, and where those of each lane begin.
 * @param {number[][][]} lanes kind, start, end, and whether it is inferred
 */
function columns(lanes) {
  const from = [0];
  for (const stretches of lanes) from.push(from[from.length - 1] + stretches.length);
  const [kind, start, end, inferred] = [0, 1, 2, 3].map((i) => lanes.flatMap((stretches) => stretches.map((stretch) => stretch[i])));
  return { from, kind, start, end, inferred };
}

/**
 * What a chart needs to know of the lanes of one capture: it asks for no more where it has no packets.
 * @param {Side} side
 */
function sideModel({ lanes, groups }) {
  const [phases, stalls] = [columns(lanes.map((lane) => lane.phases)), columns(lanes.map((lane) => lane.stalls))];
  const drawnKinds = kindsDrawn(data.kinds, data.stall_kinds);
  const model = {
    kinds: data.kinds, stallKinds: data.stall_kinds, steps: [], tables: {}, groups, phases, stalls, drawnKinds,
    drawn: phasesDrawn(phases, stalls, drawnKinds, (kind) => data.stall_kinds[kind].owed),
    opened: lanes.map(({ phases: [first] }) => (first ? first[1] : 0)),
    closed: lanes.map((lane) => (lane.phases.length ? lane.phases[lane.phases.length - 1][2] : 0)),
    streams: lanes.map((lane) => lane.stream),
    calendar: { folds: [] },
    endpoint: (/** @type {number} */ lane) => lanes[lane].client,
    owner: () => null,
  };
  return /** @type {import("./model.js").Model} */ (/** @type {unknown} */ (model));
}

/**
 * A heading for each server, which says how many connections it has, though not all are drawn; below it, the lanes.
 * @param {Side} side
 */
function sideRows({ lanes, groups }) {
  /** @type {Row[]} */
  const rows = [];
  let top = 0;
  const add = (/** @type {Omit<Row, "top" | "key">} */ row) => {
    rows.push({ ...row, key: String(rows.length), top });
    top += row.height;
  };
  lanes.forEach(({ group }, lane) => {
    if (!lane || lanes[lane - 1].group !== group) add({ kind: "server", group, lanes: [], size: groups[group].size, height: HEADING });
    add({ kind: "track", group, lanes: [lane], height: LANE_HEIGHT });
  });
  return { rows, height: top };
}

for (const side of /** @type {Side[]} */ (data.sides)) {
  const box = /** @type {HTMLElement} */ (document.getElementById(side.plot));
  const model = sideModel(side);
  const { rows, height } = sideRows(side);
  const draw = () => {
    const view = { x0: 0, x1: data.span_ns, top: 0, width: box.clientWidth, height: height + MARGIN.top + MARGIN.bottom, shift: () => 0, axis: "span" };
    const { traces, layout } = figure(model, rows, view, null);
    Plotly.react(box, traces, layout, { staticPlot: true, displayModeBar: false });
  };
  draw();
  new ResizeObserver(draw).observe(/** @type {HTMLElement} */ (box.parentElement));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
document.documentElement.dataset.ready = "true";
