/* The lanes of both captures, each in its plot, on one scale: drawn anew when the window or the colours change. */

const data = JSON.parse(document.getElementById("data").textContent);
const model = { kinds: data.kinds, steps: [], hasPackets: false };
const LANE_HEIGHT = 20;

for (const side of data.sides) {
  const lanes = side.lanes.map((lane) => ({
    ...lane, stalls: [], splits: [],
    phases: lane.phases.map(([kind, start, end, inferred]) => ({ kind, start, end, inferred, duration: end - start })),
  }));
  const box = document.getElementById(side.plot);
  const { rows, height } = layRows(side.groups, lanes, LANE_HEIGHT);
  for (const row of rows) if (row.group) row.size = row.group.size; // of which not all are drawn
  const draw = () => {
    const view = { x0: 0, x1: data.span_ns, top: 0, width: box.clientWidth, height: height + MARGIN.top + MARGIN.bottom };
    const { traces, layout } = figure(model, rows, view, null);
    Plotly.react(box, traces, layout, { staticPlot: true, displayModeBar: false });
  };
  draw();
  new ResizeObserver(draw).observe(box.parentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
