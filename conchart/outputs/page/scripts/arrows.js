/* Of pages of several places: one exchange on the clock of the first place. A group of lanes for each place, and an arrow
   for each packet from place to place: its slope is the time on the way. */

import { tickStep } from "./axis.js";
import { readHead } from "./decode.js";
import { brief, clip, el, exact, inMs, plural, shortly, svg } from "./format.js";

/** @typedef {{kind: string, words: string, length: string, start: number, end: number}} Stay */
/** @typedef {{place: string, clock: string, stream: number, server: string, chosen: boolean, bars: [string, number, number][]}} PlaceLane */
/** @typedef {{frame: number, up: boolean, label: string, way: [number, number][], lost: number | null, marks: string | null}} Packet */
/** @typedef {{title: string, stream: number, says: string, start: number, end: number, stays: Stay[], lanes: PlaceLane[], arrows: Packet[]}} Journey */

/* In pixels: room beside the lanes, heights, what lies between the groups, the width of a letter. */
const LANES_SIDE = 10;
const LANE_TALL = 16;
const LANE_FLAT = 9;
const LANE_LABEL = 14;
const PLACE_TITLE = 20;
const PLACES_APART = 26;
const LETTER_WIDE = 6.2;
/* On paper. */
const SHEET_WIDTH = 700;
const LEAST_ROOM = 300;
const MARGIN_PART = 0.03;

/** What the page tells of several places. @type {{span_ns: number, kinds: Record<string, string>, journeys: Journey[], delays: any[]}} */
export const places = await readHead(document, "places");

/**
 * Draw as wide as a box is, again when the window or the paper has another width.
 * @param {HTMLElement} box
 * @param {(width: number) => Node[]} draw
 */
export function asWideAs(box, draw) {
  const again = (/** @type {number} */ width) => box.replaceChildren(...draw(Math.max(LEAST_ROOM, width)));
  let drawn = 0;
  const follow = () => {
    if (box.clientWidth !== drawn) again((drawn = box.clientWidth));
  };
  new ResizeObserver(follow).observe(box);
  window.addEventListener("beforeprint", () => again(SHEET_WIDTH));
  window.addEventListener("afterprint", () => again(drawn));
  return () => again((drawn = box.clientWidth));
}

/**
 * Something that puts pieces into a picture.
 * @typedef {(tag: string, attributes: Record<string, string | number>, text?: string | null, into?: Element) => Element} Painter
 * @param {Element} picture
 * @returns {Painter}
 */
export const painter = (picture) => (tag, attributes, text = null, into = picture) => {
  const node = svg(tag, attributes);
  if (text !== null) node.textContent = text;
  into.append(node);
  return node;
};

/**
 * Where everything lies, from top to bottom.
 * @param {Journey} journey
 */
function rowsOfPlaces({ lanes }) {
  let y = LANE_TALL + 2 * LANE_LABEL;
  /** @type {{lane: PlaceLane, first: boolean, title: number, top: number, height: number}[]} */
  const rows = [];
  lanes.forEach((lane, i) => {
    const first = !i || lanes[i - 1].place !== lane.place;
    if (first) y += PLACES_APART;
    const title = y + 13;
    if (first) y += PLACE_TITLE;
    const height = lane.chosen ? LANE_TALL : LANE_FLAT;
    rows.push({ lane, first, title, top: y + LANE_LABEL, height });
    y += LANE_LABEL + height + 3;
  });
  return { rows, bottom: y + 6 };
}

/**
 * @param {Journey} journey
 * @param {number} width
 */
function pictureOfPlaces(journey, width) {
  const { start, end, stays, lanes, arrows } = journey;
  const margin = Math.max(1, end - start) * MARGIN_PART;
  const [from, until] = [start - margin, end + margin];
  const inner = width - 2 * LANES_SIDE;
  const x = (/** @type {number} */ at) => LANES_SIDE + ((Math.min(until, Math.max(from, at)) - from) / (until - from)) * inner;
  const { rows, bottom } = rowsOfPlaces(journey);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${bottom + 34}`, role: "img", "aria-label": `${plural(arrows.length, "packet")} between ${[...new Set(lanes.map(({ place }) => place))].join(", ")}; the table below has the same` });
  const add = painter(drawing);
  /**
   * @param {number} x1
   * @param {number} x2
   * @param {number} y
   * @param {string[]} texts the first one that fits is written
   */
  const write = (x1, x2, y, texts) => {
    const fits = texts.find((text) => text.length * LETTER_WIDE + 8 <= x2 - x1);
    if (fits) add("text", { x: (x1 + x2) / 2, y, "text-anchor": "middle", class: "inside" }, fits);
  };

  add("text", { x: LANES_SIDE, y: LANE_LABEL - 2, class: "soft" }, clip("waited for (a thin bar: packets on their way)", Math.floor(inner / LETTER_WIDE)));
  for (const { kind, words, length, start: since, end: till } of stays) {
    const [x1, x2] = [x(since), x(till)];
    const thin = kind === "path";
    const bar = add("rect", { x: x1, y: LANE_LABEL + 4 + (thin ? LANE_TALL - 4 : 0), width: Math.max(0.7, x2 - x1), height: thin ? 4 : LANE_TALL, class: `stay-${kind}` });
    add("title", {}, `${words} ${length}`, bar);
    write(x1, x2, LANE_LABEL + LANE_TALL - (thin ? 2 : 0), [`${words} ${length}`, words, length]);
  }
  for (const { lane, top, height } of rows) {
    for (const [kind, since, till] of lane.bars) {
      const [x1, x2] = [x(since), x(till)];
      if (till < from || since > until) continue;
      const bar = add("rect", { x: x1, y: top, width: Math.max(0.7, x2 - x1), height, class: lane.chosen ? "bar-of" : "bar-of beside" });
      bar.setAttribute("style", `fill: var(--${kind})`);
      add("title", {}, `${lane.place}: ${places.kinds[kind]} ${exact(till - since)}`, bar);
      if (lane.chosen) write(x1, x2, top + 12, [places.kinds[kind]]);
    }
  }
  for (const packet of arrows) if (packet.lost === null) drawPacket(journey, packet, rows, x, add);
  // Over the arrows, so that they can be read.
  for (const { lane, first, title, top } of rows) {
    if (first) {
      add("text", { x: LANES_SIDE, y: title, class: "place over" }, lane.place);
      const room = Math.floor((inner - lane.place.length * 9 - 14) / LETTER_WIDE);
      if (room > 12) add("text", { x: LANES_SIDE + lane.place.length * 9 + 14, y: title, class: "soft over" }, clip(lane.clock, room));
    }
    const words = `#${lane.stream} to ${lane.server}`;
    add("text", { x: LANES_SIDE, y: top - 3, class: "soft over" }, clip(lane.chosen ? words : `${words}, at the same time`, Math.floor(inner / LETTER_WIDE)));
  }
  for (const packet of arrows) if (packet.lost !== null) drawPacket(journey, packet, rows, x, add);

  const step = tickStep(until - from, Math.max(2, Math.floor(inner / 80)), false);
  for (let at = 0; start + at <= until; at += step) {
    add("line", { x1: x(start + at), x2: x(start + at), y1: bottom, y2: bottom + 5, class: "tick" });
    add("text", { x: x(start + at), y: bottom + 17, "text-anchor": x(start + at) > width - 30 ? "end" : "middle", class: "soft" }, at ? shortly(at) : "0");
  }
  add("line", { x1: LANES_SIDE, x2: width - LANES_SIDE, y1: bottom, y2: bottom, class: "tick" });
  add("text", { x: width - LANES_SIDE, y: bottom + 31, "text-anchor": "end", class: "soft" }, clip(`after the first packet, by the clock of ${lanes.length ? lanes[0].place : "the first place"}`, Math.floor(inner / LETTER_WIDE)));
  return drawing;
}

/**
 * A packet from lane to lane; one that was lost ends between them.
 * @param {Journey} journey
 * @param {Packet} packet
 * @param {{top: number, height: number}[]} rows
 * @param {(at: number) => number} x
 * @param {Painter} add
 */
function drawPacket({ start, lanes }, { frame, up, label, way, lost, marks }, rows, x, add) {
  const group = add("g", { class: `${up ? "by-client" : "by-server"}${lost === null ? "" : " lost"}${marks ? " marked" : ""}`, "data-frame": frame });
  const times = way.map(([lane, at]) => `${lanes[lane].place} ${inMs(at - start)} ms`);
  add("title", {}, `Frame ${frame}, ${label}: ${times.join(" → ")}${lost === null ? "" : `, lost before ${lanes[lost].place}`}`, group);
  const middle = (/** @type {number} */ lane) => rows[lane].top + rows[lane].height / 2;
  /** Arrows begin and end at the edges of the lanes. @type {(lane: number, other: number) => number} */
  const edge = (lane, other) => (middle(other) > middle(lane) ? rows[lane].top + rows[lane].height : rows[lane].top);
  for (let i = 1; i < way.length; i += 1) {
    const [[one, left], [other, came]] = [way[i - 1], way[i]];
    const [x1, y1, x2, y2] = [x(left), edge(one, other), x(came), edge(other, one)];
    add("line", { x1, y1, x2, y2 }, null, group);
    const tip = Math.atan2(y2 - y1, x2 - x1);
    const [bx, by] = [x2 - 6 * Math.cos(tip), y2 - 6 * Math.sin(tip)];
    add("path", { d: `M${x2} ${y2}L${bx - 2.5 * Math.sin(tip)} ${by + 2.5 * Math.cos(tip)}L${bx + 2.5 * Math.sin(tip)} ${by - 2.5 * Math.cos(tip)}Z` }, null, group);
  }
  if (lost === null) return;
  const [lane, at] = way[way.length - 1];
  const [y1, y2] = [edge(lane, lost), edge(lost, lane)];
  add("line", { x1: x(at), y1, x2: x(at), y2: y1 + (y2 - y1) * 0.4 }, null, group);
  add("text", { x: x(at), y: y1 + (y2 - y1) * 0.4 + 5, "text-anchor": "middle", class: "cross" }, "✕", group);
}

/**
 * The same in words, for who reads or hears it.
 * @param {Journey} journey
 */
function packetTable({ start, lanes, arrows }) {
  const names = [...new Set(lanes.map(({ place }) => place))];
  const cell = (/** @type {Packet} */ { way, lost }, /** @type {string} */ name) => {
    const seen = way.find(([lane]) => lanes[lane].place === name);
    return seen ? inMs(seen[1] - start) : lost !== null && lanes[lost].place === name ? "lost" : "";
  };
  return el("details", {}, el("summary", {}, `These ${plural(arrows.length, "packet")} as a table`),
    el("div", { class: "wide" }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "n" }, "Frame"), el("th", { scope: "col" }, "Packet"), el("th", { scope: "col" }, "From"), ...names.map((name) => el("th", { scope: "col", class: "n" }, `${name}, ms`)))),
      el("tbody", {}, arrows.map((packet) => el("tr", { "data-frame": packet.frame },
        el("td", { class: "n" }, String(packet.frame)), el("td", {}, `#${lanes[packet.way[0][0]].stream} ${packet.label}`), el("td", {}, packet.up ? "client" : "server"),
        ...names.map((name) => el("td", { class: "n" }, cell(packet, name)))))))));
}

const chosenJourney = /** @type {HTMLElement | null} */ (document.getElementById("journey"));
if (chosenJourney && places.journeys.length) {
  const journeyChoice = /** @type {HTMLSelectElement} */ (chosenJourney.querySelector("select"));
  const [says, box, table] = /** @type {HTMLElement[]} */ ([...chosenJourney.querySelectorAll("figcaption, div")]);
  journeyChoice.append(...places.journeys.map(({ title }, i) => el("option", { value: i }, title)));
  journeyChoice.value = "0"; // browsers keep what was chosen before a page is loaded again
  const journeyShown = () => places.journeys[Number(journeyChoice.value)];
  const again = asWideAs(box, (width) => [pictureOfPlaces(journeyShown(), width)]);
  const tellJourney = () => {
    const { stream, start, end } = journeyShown();
    says.replaceChildren(journeyShown().says, " ", el("a", { href: `#stream=${stream}` }, `Connection #${stream}`), ` among all lanes. The picture spans ${brief(end - start)}.`);
    table.replaceChildren(packetTable(journeyShown()));
    again();
  };
  journeyChoice.addEventListener("change", tellJourney);
  chosenJourney.hidden = false;
  tellJourney();
}
