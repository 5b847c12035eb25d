/* Of pages of several places: how much longer than the fastest packet others took from place to place, over time. */

import { asWideAs, painter, places } from "./arrows.js";
import { tickStep } from "./axis.js";
import { brief, inMs, plural, shortly, svg } from "./format.js";

/** @typedef {{name: string, says: string, bucket: number, points: [number, number, number | null, number | null, number][]}} Delays */

/* In pixels: room for the marks of the vertical axis, heights. */
const PANEL_LEFT = 58;
const DELAYS_HEIGHT = 62;
const PANEL_ABOVE = 14;

/**
 * @param {Delays} delays
 * @param {number} most of all charts: they have one delayScale
 * @param {number} width
 */
function delayChart({ name, says, bucket, points }, most, width) {
  const inner = width - PANEL_LEFT - 8;
  const bottom = PANEL_ABOVE + DELAYS_HEIGHT;
  const x = (/** @type {number} */ at) => PANEL_LEFT + (Math.min(places.span_ns, at) / Math.max(1, places.span_ns)) * inner;
  const y = (/** @type {number} */ ns) => bottom - (ns / most) * DELAYS_HEIGHT;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${bottom + 20}`, role: "img", "aria-label": `${name}: ${says}` });
  const add = painter(drawing);
  for (const [part, anchor] of /** @type {[number, string][]} */ ([[1, "hanging"], [0, "auto"]])) {
    add("line", { x1: PANEL_LEFT, x2: PANEL_LEFT + inner, y1: y(most * part), y2: y(most * part), class: "tick" });
    add("text", { x: PANEL_LEFT - 6, y: y(most * part), "text-anchor": "end", "dominant-baseline": anchor, class: "soft" }, part ? shortly(most) : "0");
  }
  for (const [at, packets, median, longest, lost] of points) {
    const [x1, x2] = [x(at), x(at + bucket)];
    const bar = add("g", {});
    add("title", {}, `${inMs(at)} ms to ${inMs(at + bucket)} ms: ${plural(packets, "packet")}${longest === null || median === null ? "" : `, half up to ${brief(median)} above the least, at most ${brief(longest)}`}${lost ? `, ${lost} lost` : ""}`, bar);
    for (const [ns, kind] of /** @type {[number | null, string][]} */ ([[longest, "longest"], [median, "median"]]))
      if (ns !== null) add("rect", { x: x1, y: Math.min(y(ns), bottom - 1), width: Math.max(0.7, x2 - x1 - 0.5), height: Math.max(1, bottom - y(ns)), class: kind }, null, bar);
    if (lost) add("text", { x: (x1 + x2) / 2, y: PANEL_ABOVE - 3, "text-anchor": "middle", class: "cross" }, "✕", bar);
  }
  const step = tickStep(places.span_ns, Math.max(2, Math.floor(inner / 80)), false);
  for (let at = 0; at <= places.span_ns; at += step) add("text", { x: x(at), y: bottom + 14, "text-anchor": x(at) > width - 30 ? "end" : "middle", class: "soft" }, at ? shortly(at) : "0");
  return drawing;
}

/* A round delayScale that all have in common: which path is worst must be seen at once. */
const slowestOfAll = places.delays.reduce((most, { points }) => points.reduce((/** @type {number} */ high, /** @type {any[]} */ point) => Math.max(high, point[3] || 0), most), 1);
const delayScale = Math.ceil(slowestOfAll / tickStep(slowestOfAll, 4, false)) * tickStep(slowestOfAll, 4, false);
document.querySelectorAll("#delays figure").forEach((figure, i) => {
  const box = /** @type {HTMLElement} */ (figure.querySelector("div"));
  asWideAs(box, (width) => [delayChart(places.delays[i], delayScale, width)])();
});
