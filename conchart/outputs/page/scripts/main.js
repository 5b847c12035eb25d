/* Wiring: search, filters, findings and the chosen connection, shared by lanes, tables, detail panel and the page's address. */

import { Address, readView } from "./address.js";
import { copyText } from "./copy.js";
import { loadPlotly } from "./decode.js";
import { detailPanel } from "./describe.js";
import { brief, clip, count, el, plural } from "./format.js";
import { SEARCH_HINT, SingleKeys, fillHelp } from "./help.js";
import { ladderPanel } from "./ladder.js";
import { Lanes } from "./lanes.js";
import { filterOf } from "./listings.js";
import { readModel } from "./model.js";
import { Search } from "./search.js";
import { Statistics } from "./statistics.js";
import { TableView } from "./table.js";
import { VIEWPOINTS } from "./viewpoint.js";

/** @typedef {import("./model.js").Row} Row */
/** @typedef {import("./search.js").Found} Found */
/** @typedef {import("./address.js").View} View */

/**
 * An element of the page's template.
 * @param {string} id
 */
function element(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

/** @typedef {HTMLInputElement | HTMLSelectElement} Filter */

const [model] = await Promise.all([readModel(document), loadPlotly(document)]);
const detail = element("detail");
const toolbar = element("toolbar");
const help = /** @type {HTMLDialogElement} */ (element("help"));
const search = new Search(model);
const filters = {
  text: /** @type {HTMLInputElement} */ (element("filter-text")),
  server: /** @type {HTMLSelectElement} */ (element("filter-server")),
  app: /** @type {HTMLSelectElement} */ (element("filter-app")),
};
const searchTold = element("search-told");
/**
 * The finding of which nothing but the connections are shown.
 * @type {Row | null}
 */
let finding = null;
const findingShown = element("finding-shown");
const findingButtons = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-finding]")]);
/* Those of the panel, in its order: the worst stand above, too. */
const findingNumbers = findingButtons.filter((button) => button.closest("#findings")).map((button) => Number(button.dataset.finding));

/**
 * The part of the page that a link within it goes to; other links tell a view.
 * @param {string} hash
 */
const place = (hash) => document.getElementById(hash.slice(1));
const address = new Address(shownView, restore);
const lanes = new Lanes(model, { onChoose: choose, onView: seen });
const statistics = new Statistics(model, lanes);
const table = new TableView(model, search, { onChoose: choose, onFinding: showFinding, onChange: () => address.changed() });

/* The view is another one. */
function seen() {
  address.changed();
  statistics.follow();
}

/* What the part of the address behind the ? leaves closed, for a class that predicts first. */
const asked = new URLSearchParams(location.search);
/* Ladders have their time to scale. */
let toScale = false;
/* Ladders say what packets are for. */
let sayWhatFor = asked.get("explanations") !== "closed";

/**
 * @param {boolean} chosen
 * @param {number} lane
 */
function scaleLadder(chosen, lane) {
  toScale = chosen;
  choose(lane);
  /** @type {HTMLElement | null} */ (detail.querySelector(`[data-scale="${chosen}"]`))?.focus();
}

/**
 * @param {boolean} chosen
 * @param {number} lane
 */
function explainLadder(chosen, lane) {
  sayWhatFor = chosen;
  choose(lane);
  /** @type {HTMLElement | null} */ (detail.querySelector("[data-explanations]"))?.focus();
}

/**
 * A lane by its number, or none.
 * @param {number | null} lane
 */
function choose(lane, { zoom = false, scroll = false } = {}) {
  if (zoom && lane !== null) lanes.zoomToLanes([lane]);
  const row = lanes.choose(lane);
  table.choose(lane, !zoom);
  address.changed();
  detail.hidden = lane === null;
  tellChosen(lane);
  if (lane === null) return;
  // What the page was made to explain has its place in it; others are looked at beside the lanes.
  detail.classList.toggle("dock", model.streams[lane] !== model.explained);
  detail.replaceChildren(...detailPanel(model.lane(lane), model.kinds, {
    zoom: () => lanes.zoomToLanes([lane]),
    table: () => {
      table.open("connections");
      table.choose(lane, true);
      table.box.scrollIntoView({ block: "center" });
    },
    larger: () => detail.classList.toggle("larger"),
    close: () => choose(null),
  }), ...ladderPanel(model, model.lane(lane), { toScale, explained: sayWhatFor, onScale: (chosen) => scaleLadder(chosen, lane), onExplain: (chosen) => explainLadder(chosen, lane) }));
  detail.scrollTop = 0;
  if (scroll && row) showRow(row);
}

/**
 * Scroll the page so far that a row of the lanes is to be seen, above the details and below the toolbar.
 * @param {import("./tree.js").Row} row
 */
function showRow(row) {
  const { top } = lanes.box.getBoundingClientRect();
  const upper = top + lanes.inner.top + row.top - lanes.box.scrollTop;
  const least = getComputedStyle(toolbar).position === "sticky" ? toolbar.offsetHeight + lanes.inner.top : 0;
  const most = window.innerHeight - (detail.classList.contains("dock") ? detail.offsetHeight : 0);
  if (upper < least) window.scrollBy(0, upper - least - row.height);
  else if (upper + row.height > most) window.scrollBy(0, upper + row.height - most + row.height);
}

/**
 * In a sentence, for whoever hears the page: the details are there to be read at leisure.
 * @param {number | null} lane
 */
function tellChosen(lane) {
  const told = lane === null ? null : model.lane(lane);
  element("chosen-told").textContent = told ? `Connection ${told.stream}, ${told.client} to ${told.server}, ${told.state}, open for ${brief(told.duration)}` : "";
}

/* A page that was made as an end saw it has no choice. */
const seenFrom = /** @type {HTMLSelectElement | null} */ (document.getElementById("seen-from"));
const seenNote = element("seen-note");

/**
 * Tell all times as they were seen there.
 * @param {string} viewpoint
 */
function seeFrom(viewpoint) {
  if (!seenFrom || viewpoint === model.viewpoint) return;
  seenFrom.value = viewpoint;
  seenNote.hidden = viewpoint === "capture";
  model.seeFrom(viewpoint);
  search.forget();
  table.forget();
  lanes.retime();
  statistics.show(lanes.kept);
  applyFilters();
  choose(lanes.chosen);
}

const groupsShown = new Set(model.group);
model.groups.forEach((group, i) => {
  if (groupsShown.has(i)) filters.server.append(el("option", { value: group.endpoint }, clip(group.title ? `${group.endpoint} ${group.title}` : group.endpoint, 60)));
});
const apps = model.tables.lanes.column("app");
const appNames = /** @type {string[]} */ (apps.texts); // a column of texts
for (const app of [...appNames].sort()) filters.app.append(el("option", { value: app }, app));

/* What the search finds, of the server, protocol and finding that are chosen: 1 for each lane. */
function keep() {
  const found = search.find(filters.text.value);
  const kept = found.lanes.slice();
  const [server, app] = [filters.server.value, filters.app.value];
  const group = model.groups.findIndex(({ endpoint }) => endpoint === server);
  const code = appNames.indexOf(app);
  const affected = finding && new Uint8Array(model.count);
  if (finding && affected) for (const lane of search.lanesOf(finding.number)) affected[lane] = 1;
  for (let lane = 0; lane < kept.length; lane += 1)
    if ((server && model.group[lane] !== group) || (app && (apps.values[lane] !== code || (apps.valid && !apps.valid[lane]))) || (affected && !affected[lane])) kept[lane] = 0;
  return { found, kept };
}

/**
 * Beside the box: what was not understood, and what of it was.
 * @param {Found} found
 */
function tellSearch({ errors, understood }) {
  const hint = document.activeElement === filters.text && !filters.text.value ? SEARCH_HINT : "";
  const told = errors.length ? [el("b", {}, errors.join("; ")), understood.length ? `. Understood: ${understood.join(" ")}` : "."] : [hint];
  searchTold.replaceChildren(...told.filter(Boolean));
}

/* Of more connections, lanes are drawn when nobody has typed for so long, in ms: the tables and the count keep up. */
const QUICK = 3000;
const TYPED = 150;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let drawing;

/**
 * Draw the lanes that are kept; where they are those that are drawn already, nothing changes.
 * @param {Uint32Array} shown
 */
function drawLanes(shown) {
  if (shown.length === lanes.kept.length && shown.every((lane, i) => lane === lanes.kept[i])) return;
  lanes.box.scrollTop = 0;
  lanes.show(shown);
  statistics.show(shown);
}

/* Show in tables and lanes what is kept. */
function applyFilters({ typing = false } = {}) {
  const { found, kept } = keep();
  const shown = new Uint32Array(kept.reduce((sum, one) => sum + one, 0));
  for (let lane = 0, i = 0; lane < kept.length; lane += 1) if (kept[lane]) shown[i++] = lane;
  tellSearch(found);
  element("filter-count").textContent = shown.length === model.count ? plural(shown.length, "connection") : `${count(shown.length)} of ${plural(model.count, "connection")}`;
  table.show(kept, found);
  clearTimeout(drawing);
  if (typing && model.count > QUICK) drawing = setTimeout(() => drawLanes(shown), TYPED);
  else drawLanes(shown);
  address.changed();
  return shown;
}

/** @param {Row | null} chosen */
function markFinding(chosen) {
  finding = chosen;
  findingShown.hidden = !finding;
  findingShown.textContent = finding ? `${clip(finding.title, 50)} ✕` : "";
  for (const button of findingButtons) button.setAttribute("aria-pressed", String(Number(button.dataset.finding) === finding?.number));
}

/**
 * Show the connections of a finding from their first packet to their last, or all connections again.
 * @param {Row | null} chosen
 */
function showFinding(chosen) {
  markFinding(chosen);
  if (finding) for (const filter of /** @type {Filter[]} */ (Object.values(filters))) filter.value = "";
  const kept = applyFilters();
  if (!finding) {
    lanes.reset();
    return;
  }
  if (kept.length) lanes.zoomToLanes(kept);
  element("connections").scrollIntoView({ block: "start" });
  lanes.box.focus({ preventScroll: true });
}

/**
 * The finding that comes so many after the one shown, in the order of the panel.
 * @param {number} by
 */
function stepFinding(by) {
  if (!findingNumbers.length) return;
  const now = finding ? findingNumbers.indexOf(finding.number) : -1;
  const next = now < 0 ? (by > 0 ? 0 : findingNumbers.length - 1) : (now + by + findingNumbers.length) % findingNumbers.length;
  showFinding(model.findings.get(findingNumbers[next]) || null);
}

/** @returns {View} */
function shownView() {
  const { x0, x1 } = lanes.view;
  const whole = x0 === lanes.full[0] && x1 === lanes.full[1];
  return {
    range: whole ? null : [x0, x1], search: filters.text.value, server: filters.server.value, app: filters.app.value,
    finding: finding && finding.number, chosen: lanes.chosen === null ? null : model.streams[lanes.chosen], unfolded: [...lanes.unfolded],
    axis: lanes.view.axis, seenFrom: model.viewpoint, toScale, packed: lanes.packed, costly: lanes.costly, height: lanes.laneHeight === usualHeight ? null : lanes.laneHeight, ...table.state,
  };
}

/**
 * Show what a link says, as far as it is here.
 * @param {View} view
 */
function restore(view) {
  filters.text.value = view.search;
  // A list that has no such entry would be empty.
  for (const [list, value] of /** @type {[HTMLSelectElement, string][]} */ ([[filters.server, view.server], [filters.app, view.app]])) list.value = [...list.options].some((option) => option.value === value) ? value : "";
  markFinding((view.finding !== null && model.findings.get(view.finding)) || null);
  seeFrom(view.seenFrom);
  toScale = view.toScale;
  lanes.unfolded = new Map(view.unfolded);
  lanes.packed = view.packed;
  lanes.costly = view.costly;
  lanes.laneHeight = view.height || usualHeight;
  heights.value = String(lanes.laneHeight);
  lanes.packing.checked = view.packed;
  lanes.order.value = view.costly ? "cost" : "time";
  lanes.view.height = 0; // as high as these rows need, not as what stood there before
  lanes.show(lanes.kept);
  lanes.setAxis(view.axis);
  table.restore(view.tab, view.sort);
  applyFilters();
  choose(view.chosen === null ? null : (model.laneOf.get(view.chosen) ?? null));
  const [from, to] = view.range || lanes.full;
  lanes.zoomTo(from, to);
}

for (const button of findingButtons) {
  const chosen = model.findings.get(Number(button.dataset.finding)) || null;
  button.addEventListener("click", () => showFinding(finding === chosen ? null : chosen));
}
for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("#verdict [data-stream]")))
  button.addEventListener("click", () => choose(model.laneOf.get(Number(button.dataset.stream)) ?? null, { zoom: true, scroll: true }));
findingShown.addEventListener("click", () => showFinding(null));

filters.text.addEventListener("input", () => applyFilters({ typing: true }));
for (const change of ["focus", "blur"]) filters.text.addEventListener(change, () => !filters.text.value && tellSearch(search.find("")));
for (const list of [filters.server, filters.app]) list.addEventListener("change", () => applyFilters());
seenFrom?.addEventListener("change", () => seeFrom(seenFrom.value));
const heights = /** @type {HTMLSelectElement} */ (element("lane-height"));
const usualHeight = lanes.laneHeight;
heights.addEventListener("change", () => address.changed());

const single = new SingleKeys();
fillHelp(help, search.phases, single);
const openHelp = () => help.showModal();
element("help-open").addEventListener("click", openHelp);
const link = element("copy-link");
link.addEventListener("click", async () => {
  await copyText(address.link());
  link.textContent = "copied";
  setTimeout(() => { link.textContent = "Link"; }, 1200);
});

/**
 * Back by one step: an empty box, no details, no finding.
 * @param {KeyboardEvent} event
 */
function goBack(event) {
  if (event.target === filters.text && filters.text.value) {
    event.preventDefault();
    filters.text.value = "";
    applyFilters();
  } else if (!detail.hidden) choose(null);
  else if (finding) showFinding(null);
}

/** @type {Record<string, () => unknown>} */
const keys = {
  "/": () => {
    filters.text.focus();
    filters.text.select();
  },
  "?": openHelp,
  n: () => stepFinding(1),
  p: () => stepFinding(-1),
  t: () => table.focus(),
  v: () => seeFrom(VIEWPOINTS[(VIEWPOINTS.indexOf(model.viewpoint) + 1) % VIEWPOINTS.length]),
  l: () => {
    detail.classList.add("larger");
    if (lanes.chosen !== null) detail.querySelector(".ladder")?.scrollIntoView({ block: "start" });
  },
  c: () => lanes.chosen !== null && copyText(filterOf(model, lanes.chosen)),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.key === "Escape") {
    goBack(event);
    return;
  }
  if (!single.on || !Object.hasOwn(keys, event.key) || /** @type {Element} */ (event.target).closest("input, select, textarea")) return;
  event.preventDefault();
  keys[event.key]();
});

if (location.hash.length > 1 && !place(location.hash)) {
  restore(readView(location.hash));
  element("connections").scrollIntoView({ block: "start" });
} else applyFilters();
if (model.explained !== null && location.hash.length < 2) {
  choose(model.laneOf.get(model.explained) ?? null);
  detail.scrollIntoView({ block: "start" });
}
/* A class predicts first: the answer waits until somebody opens it. */
if (asked.get("findings") === "closed") {
  for (const [id, title] of [["verdict", "The answer"], ["findings", "Findings"]]) {
    const section = document.getElementById(id);
    const cover = el("details", { class: "covered" }, el("summary", {}, title));
    section?.replaceWith(cover);
    if (section) cover.append(section);
  }
}
document.documentElement.dataset.ready = "true";
