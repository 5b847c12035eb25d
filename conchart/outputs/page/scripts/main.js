/* Wiring: what somebody does becomes a change of the state; lanes, tables, detail panel, filters and the page's address
   follow the state. */

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
import { State, findingAfter, goBack, narrow, possible, seeFromNext } from "./state.js";
import { Statistics } from "./statistics.js";
import { TableView } from "./table.js";
import { VIEWPOINTS } from "./viewpoint.js";

/** @typedef {import("./state.js").Name} Name */
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
const searchMessage = element("search-told");
const findingShown = element("finding-shown");
const findingButtons = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-finding]")]);
/* Those of the panel, in its order: the worst stand above, too. */
const findingNumbers = findingButtons.filter((button) => button.closest("#findings")).map((button) => Number(button.dataset.finding));

/**
 * The part of the page that a link within it goes to; other links tell a view.
 * @param {string} hash
 */
const place = (hash) => document.getElementById(hash.slice(1));
const state = new State(follow);
const address = new Address(() => state.shown, restore);
const lanes = new Lanes(model, state, choose);
const statistics = new Statistics(model, lanes);
const table = new TableView(model, search, state, { onChoose: choose, onFinding: ({ number }) => showFinding(number) });

/* What the part of the address behind the ? leaves closed, for a class that predicts first. */
const options = new URLSearchParams(location.search);

/**
 * Everything follows the state, in the order in which one thing builds on the other: times, what is filtered, lanes and
 * tables, details.
 * @param {Set<Name>} changed
 */
function follow(changed) {
  const any = (/** @type {Name[]} */ ...names) => names.some((name) => changed.has(name));
  if (any("seenFrom")) retime();
  lanes.follow(changed);
  table.follow(changed);
  if (any("seenFrom")) statistics.show(lanes.filtered);
  if (any("search", "server", "app", "finding", "seenFrom")) applyFilters(any("search") && changed.size === 1);
  if (any("chosen", "toScale", "explanations", "seenFrom")) tellDetails();
  if (any("range", "axis", "seenFrom")) statistics.follow();
  address.changed();
}

/**
 * A button of the ladder that was drawn anew has the focus again.
 * @param {string} button
 */
const refocus = (button) => /** @type {HTMLElement | null} */ (detail.querySelector(button))?.focus();

/**
 * A lane by its number, or none.
 * @param {number | null} lane
 */
function choose(lane, { zoom = false, scroll = false } = {}) {
  if (zoom && lane !== null) lanes.zoomToLanes([lane]);
  state.change({ chosen: lane === null ? null : model.streams[lane] });
  const row = lanes.bring();
  if (!zoom) table.bringChosen();
  if (scroll && row) showRow(row);
}

/* The details of the chosen connection. */
function tellDetails() {
  const { chosen: lane, state: { shown } } = lanes;
  detail.hidden = lane === null;
  tellChosen(lane);
  if (lane === null) return;
  // What the page was made to explain has its place in it; others are looked at beside the lanes.
  detail.classList.toggle("dock", model.streams[lane] !== model.explained);
  detail.replaceChildren(...detailPanel(model.lane(lane), model, {
    zoom: () => lanes.zoomToLanes([lane]),
    table: () => {
      table.open("connections");
      table.bringChosen();
      table.box.scrollIntoView({ block: "center" });
    },
    larger: () => detail.classList.toggle("larger"),
    close: () => choose(null),
  }), ...ladderPanel(model, model.lane(lane), {
    toScale: shown.toScale, explained: shown.explanations, room: detail.clientWidth - 34,
    onScale: (toScale) => {
      state.change({ toScale });
      refocus(`[data-scale="${toScale}"]`);
    },
    onExplain: (explanations) => {
      state.change({ explanations });
      refocus("[data-explanations]");
    },
  }));
  detail.scrollTop = 0;
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
  const chosen = lane === null ? null : model.lane(lane);
  element("chosen-told").textContent = chosen ? `Connection ${chosen.stream}, ${chosen.client} to ${chosen.server}, ${chosen.state}, open for ${brief(chosen.duration)}` : "";
}

/* A page that was made as an end saw it has no choice. */
const seenFrom = /** @type {HTMLSelectElement | null} */ (document.getElementById("seen-from"));
const seenNote = element("seen-note");

/* Tell all times as they were seen there. */
function retime() {
  const { seenFrom: viewpoint } = state.shown;
  if (seenFrom) seenFrom.value = viewpoint;
  seenNote.hidden = viewpoint === "capture";
  model.seeFrom(viewpoint);
  search.forget();
  table.forget();
}

const groupsShown = new Set(model.group);
model.groups.forEach((group, i) => {
  if (groupsShown.has(i)) filters.server.append(el("option", { value: group.endpoint }, clip(group.title ? `${group.endpoint} ${group.title}` : group.endpoint, 60)));
});
const apps = model.tables.lanes.column("app");
const appNames = /** @type {string[]} */ (apps.texts); // a column of texts
for (const app of [...appNames].sort()) filters.app.append(el("option", { value: app }, app));

/* What the search finds, of the server, protocol and finding that are chosen: 1 for each lane. */
function filterLanes() {
  const { search: text, server, app, finding } = state.shown;
  const found = search.find(text);
  const filtered = found.lanes.slice();
  const group = model.groups.findIndex(({ endpoint }) => endpoint === server);
  const code = appNames.indexOf(app);
  const affected = finding === null ? null : new Uint8Array(model.count);
  if (finding !== null && affected) for (const lane of search.lanesOf(finding)) affected[lane] = 1;
  for (let lane = 0; lane < filtered.length; lane += 1)
    if ((server && model.group[lane] !== group) || (app && (apps.values[lane] !== code || (apps.valid && !apps.valid[lane]))) || (affected && !affected[lane])) filtered[lane] = 0;
  return { found, filtered };
}

/**
 * Beside the box: what was not understood, and what of it was.
 * @param {Found} found
 */
function tellSearch({ errors, understood }) {
  const hint = document.activeElement === filters.text && !filters.text.value ? SEARCH_HINT : "";
  const message = errors.length ? [el("b", {}, errors.join("; ")), understood.length ? `. Understood: ${understood.join(" ")}` : "."] : [hint];
  searchMessage.replaceChildren(...message.filter(Boolean));
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
  if (shown.length === lanes.filtered.length && shown.every((lane, i) => lane === lanes.filtered[i])) return;
  lanes.box.scrollTop = 0;
  lanes.show(shown);
  statistics.show(shown);
}

/**
 * Show in tables and lanes what is filtered.
 * @param {boolean} typing more may be typed: many lanes are drawn later
 */
function applyFilters(typing) {
  const { found, filtered } = filterLanes();
  const shown = new Uint32Array(filtered.reduce((sum, one) => sum + one, 0));
  for (let lane = 0, i = 0; lane < filtered.length; lane += 1) if (filtered[lane]) shown[i++] = lane;
  tellFilters();
  tellSearch(found);
  element("filter-count").textContent = shown.length === model.count ? plural(shown.length, "connection") : `${count(shown.length)} of ${plural(model.count, "connection")}`;
  table.show(filtered, found);
  clearTimeout(drawing);
  if (typing && model.count > QUICK) drawing = setTimeout(() => drawLanes(shown), TYPED);
  else drawLanes(shown);
}

/* The controls say what is filtered. */
function tellFilters() {
  const { search: text, server, app, finding } = state.shown;
  for (const [filter, value] of /** @type {[Filter, string][]} */ ([[filters.text, text], [filters.server, server], [filters.app, app]])) if (filter.value !== value) filter.value = value;
  const row = finding === null ? null : model.findings.get(finding);
  findingShown.hidden = !row;
  findingShown.textContent = row ? `${clip(row.title, 50)} ✕` : "";
  for (const button of findingButtons) button.setAttribute("aria-pressed", String(Number(button.dataset.finding) === finding));
}

/**
 * Show the connections of a finding from their first packet to their last, or all connections again.
 * @param {number | null} finding
 */
function showFinding(finding) {
  state.change(narrow(state.shown, finding));
  if (finding === null) {
    lanes.reset();
    return;
  }
  if (lanes.filtered.length) lanes.zoomToLanes(Array.from(lanes.filtered));
  element("connections").scrollIntoView({ block: "start" });
  lanes.box.focus({ preventScroll: true });
}

/** @param {number} by */
function stepFinding(by) {
  if (findingNumbers.length) showFinding(findingAfter(state.shown, findingNumbers, by));
}

/* What a link can name here. A page that was made as an end saw it has one viewpoint. */
const here = { servers: [...filters.server.options].map(({ value }) => value), apps: [...appNames], findings: model.findings, streams: model.laneOf, viewpoints: seenFrom ? VIEWPOINTS : [] };

/**
 * Show what a link says, as far as it is here.
 * @param {View} view
 */
function restore(view) {
  lanes.view.height = 0; // as high as these rows need, not as what stood there before
  state.change({ ...possible(view, here), ...table.possible(view.tab, view.sort), range: null });
  lanes.show(lanes.filtered);
  choose(lanes.chosen);
  if (view.range) lanes.zoomTo(...view.range);
}

for (const button of findingButtons) {
  const number = Number(button.dataset.finding);
  button.addEventListener("click", () => showFinding(state.shown.finding === number || !model.findings.has(number) ? null : number));
}
for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("#verdict [data-stream]")))
  button.addEventListener("click", () => choose(model.laneOf.get(Number(button.dataset.stream)) ?? null, { zoom: true, scroll: true }));
findingShown.addEventListener("click", () => showFinding(null));

filters.text.addEventListener("input", () => state.change({ search: filters.text.value }));
for (const change of ["focus", "blur"]) filters.text.addEventListener(change, () => !filters.text.value && tellSearch(search.find("")));
filters.server.addEventListener("change", () => state.change({ server: filters.server.value }));
filters.app.addEventListener("change", () => state.change({ app: filters.app.value }));
seenFrom?.addEventListener("change", () => state.change({ seenFrom: seenFrom.value }));

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
 * @param {KeyboardEvent} event
 */
function escape(event) {
  const part = goBack(state.shown, event.target === filters.text);
  if ("search" in part) event.preventDefault();
  if ("finding" in part) showFinding(null);
  else state.change(part);
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
  v: () => seenFrom && state.change(seeFromNext(state.shown)),
  l: () => {
    detail.classList.add("larger");
    if (lanes.chosen !== null) detail.querySelector(".ladder")?.scrollIntoView({ block: "start" });
  },
  c: () => lanes.chosen !== null && copyText(filterOf(model, lanes.chosen)),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.key === "Escape") {
    escape(event);
    return;
  }
  if (!single.on || !Object.hasOwn(keys, event.key) || /** @type {Element} */ (event.target).closest("input, select, textarea")) return;
  event.preventDefault();
  keys[event.key]();
});

if (seenFrom) seenFrom.value = state.shown.seenFrom; // browsers keep what was chosen before a page is loaded again
applyFilters(false);
state.change({ explanations: options.get("explanations") !== "closed" });
if (location.hash.length > 1 && !place(location.hash)) {
  restore(readView(location.hash));
  element("connections").scrollIntoView({ block: "start" });
}
if (model.explained !== null && location.hash.length < 2) {
  choose(model.laneOf.get(model.explained) ?? null);
  detail.scrollIntoView({ block: "start" });
}
/* A class predicts first: the answer waits until somebody opens it. */
if (options.get("findings") === "closed") {
  for (const [id, title] of [["verdict", "The answer"], ["findings", "Findings"]]) {
    const section = document.getElementById(id);
    const cover = el("details", { class: "covered" }, el("summary", {}, title));
    section?.replaceWith(cover);
    if (section) cover.append(section);
  }
}
document.documentElement.dataset.ready = "true";
