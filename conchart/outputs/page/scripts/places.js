/* The packets of a chosen exchange, and of what it caused, from place to place: time downwards, a column for each place. */

import { el } from "./format.js";
import { drawArrows } from "./ladder.js";

/** @typedef {import("./model.js").Row} Row */

/**
 * A packet of the page's data as an arrow; of a lost one, the way ends before the next place.
 * @param {Row} told
 * @param {number} places
 * @returns {import("./ladder.js").Arrow}
 */
function arrowOf(told, places) {
  /** @type {[number, number][]} */
  const way = [...told.way];
  const [column, at] = way[way.length - 1];
  if (told.lost) way.push([Math.min(places - 0.6, Math.max(-0.4, column + (told.up ? 0.4 : -0.4))), at]);
  return { rung: { ...told, seen_at: told.way[0][1], mark: null, says: "" }, way, up: told.up, lost: told.lost };
}

/**
 * Show the exchange that users waited for longest, and the others when somebody chooses them.
 * @param {Row[]} journeys
 * @param {HTMLElement | null} figure
 */
export function showJourneys(journeys, figure) {
  if (!figure || !journeys || !journeys.length) return;
  const choice = /** @type {HTMLSelectElement} */ (figure.querySelector("select"));
  const [caption, box] = /** @type {HTMLElement[]} */ ([...figure.querySelectorAll("figcaption, div")]);
  choice.append(...journeys.map(({ title }, i) => el("option", { value: i }, title)));
  const draw = () => {
    const { says, places, arrows } = journeys[Number(choice.value)];
    const drawn = arrows.map((/** @type {Row} */ told) => arrowOf(told, places.length));
    const end = drawn.flatMap((/** @type {import("./ladder.js").Arrow} */ { way }) => way.map(([, at]) => at)).reduce((most, at) => Math.max(most, at), 1);
    caption.textContent = `${says} The slope of a line is the time on the path.`;
    box.replaceChildren(drawArrows(places.map((/** @type {string} */ name) => ({ name, doubt: null })), drawn, { start: 0, end, zero: 0, room: box.clientWidth, bands: [], silences: [], explained: false }));
  };
  figure.hidden = false;
  choice.value = "0"; // browsers keep what was chosen before a page is loaded again
  choice.addEventListener("change", draw);
  draw();
}
