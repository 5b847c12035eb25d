/* Wiring: findings, filters and the chosen connection, shared by lanes, table and detail panel. */

const model = readModel();
const detail = document.getElementById("detail");
const lanes = new Lanes(model, { onChoose: choose });
const table = new Table(model, { onChoose: choose });

function choose(lane, { zoom = false, scroll = false } = {}) {
  if (zoom) lanes.zoomToLanes([lane]);
  lanes.choose(lane);
  table.choose(lane, !zoom);
  detail.hidden = false;
  detail.replaceChildren(...detailPanel(lane, model.kinds, {
    zoom: () => lanes.zoomToLanes([lane]),
    table: () => {
      table.choose(lane, true);
      document.getElementById("table-box").scrollIntoView({ block: "center" });
    },
    close: () => {
      detail.hidden = true;
      lanes.choose(null);
      table.choose(null, false);
    },
  }));
  if (scroll && zoom) {
    const { top, bottom } = lanes.box.getBoundingClientRect();
    if (top < 0 || bottom > window.innerHeight) lanes.box.scrollIntoView({ block: "nearest" });
  }
}

const filters = { text: document.getElementById("filter-text"), server: document.getElementById("filter-server"), app: document.getElementById("filter-app") };

model.groups.forEach((group, i) => {
  if (model.lanes.some((lane) => lane.group === i)) filters.server.append(el("option", { value: i }, clip(group.title ? `${group.endpoint} ${group.title}` : group.endpoint, 60)));
});
for (const app of [...new Set(model.lanes.map((lane) => lane.app).filter(Boolean))].sort()) filters.app.append(el("option", { value: app }, app));

/* The finding of which nothing but the connections are shown, or null. */
let finding = null;
const findingShown = document.getElementById("finding-shown");
const findingButtons = [...document.querySelectorAll("[data-finding]")];

function applyFilters() {
  const words = filters.text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const [server, app] = [filters.server.value, filters.app.value];
  const kept = model.lanes.filter((lane) => (server === "" || lane.group === Number(server)) && (app === "" || lane.app === app) && (!finding || finding.streams.has(lane.stream)) && words.every((word) => lane.search.includes(word)));
  document.getElementById("filter-count").textContent = kept.length === model.lanes.length ? plural(kept.length, "connection") : `${count(kept.length)} of ${plural(model.lanes.length, "connection")}`;
  lanes.box.scrollTop = 0;
  lanes.show(kept);
  table.limit = FIRST_ROWS;
  table.show(kept);
  return kept;
}

/* Show the connections of a finding from their first packet to their last, or all connections again. */
function showFinding(chosen) {
  finding = chosen;
  findingShown.hidden = !finding;
  findingShown.textContent = finding ? `${clip(finding.title, 50)} ✕` : "";
  for (const button of findingButtons) button.setAttribute("aria-pressed", String(Boolean(finding) && Number(button.dataset.finding) === finding.number));
  if (finding) for (const filter of Object.values(filters)) filter.value = "";
  const kept = applyFilters();
  if (!finding) {
    lanes.reset();
    return;
  }
  lanes.zoomToLanes(kept);
  document.getElementById("connections").scrollIntoView({ block: "start" });
  lanes.box.focus({ preventScroll: true });
}

for (const button of findingButtons) {
  const chosen = model.findings.get(Number(button.dataset.finding));
  button.addEventListener("click", () => showFinding(finding === chosen ? null : chosen));
}
findingShown.addEventListener("click", () => showFinding(null));

filters.text.addEventListener("input", applyFilters);
for (const list of [filters.server, filters.app]) list.addEventListener("change", applyFilters);
document.getElementById("filter-count").textContent = plural(model.lanes.length, "connection");
