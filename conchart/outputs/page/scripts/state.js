/* What is shown, in one object: parts of the page read it, and every change of it goes through `change`, which tells
   them. Steps are pure functions from what is shown to what changes, so that tests read them without a page. */

import { PLAIN_VIEW } from "./address.js";
import { VIEWPOINTS } from "./viewpoint.js";

/** @typedef {import("./address.js").View} View */
/** @typedef {View & {explanations: boolean}} Shown a view, and whether ladders say what packets are for, of which links say nothing */
/** @typedef {keyof Shown} Name */

export class State {
  /** @param {(changed: Set<Name>) => void} follow after each change, of what is now different */
  constructor(follow) {
    /** @type {Readonly<Shown>} */
    this.shown = { ...PLAIN_VIEW, explanations: true };
    this.follow = follow;
  }

  /** @param {Partial<Shown>} part what is to be shown; where nothing is different, nobody is told */
  change(part) {
    const changed = /** @type {Name[]} */ (Object.keys(part)).filter((name) => !Object.is(part[name], this.shown[name]));
    if (!changed.length) return;
    this.shown = { ...this.shown, ...part };
    this.follow(new Set(changed));
  }
}

/**
 * Unfold groups, or fold them.
 * @param {Shown} shown
 * @param {string[]} keys
 * @param {boolean} open
 * @returns {Partial<Shown>}
 */
export function foldGroups({ unfolded }, keys, open) {
  return { unfolded: [...new Map([...unfolded, ...keys.map((key) => /** @type {[string, boolean]} */ ([key, open]))])] };
}

/**
 * Tell times on another axis; between those of the capture and those of each connection, no range can be kept.
 * @param {Shown} shown
 * @param {string} axis
 * @returns {Partial<Shown>}
 */
export function tellTimes(shown, axis) {
  return (axis === "own") === (shown.axis === "own") ? { axis } : { axis, range: null };
}

/**
 * Show all connections of a finding, or all that there are.
 * @param {Shown} shown
 * @param {number | null} finding
 * @returns {Partial<Shown>}
 */
export function narrow(shown, finding) {
  return finding === null ? { finding } : { finding, search: "", server: "", app: "" };
}

/**
 * The finding that comes so many after the one shown.
 * @param {Shown} shown
 * @param {number[]} numbers of all findings, in their order
 * @param {number} by
 * @returns {number | null}
 */
export function findingAfter({ finding }, numbers, by) {
  if (!numbers.length) return null;
  const now = finding === null ? -1 : numbers.indexOf(finding);
  return numbers[now < 0 ? (by > 0 ? 0 : numbers.length - 1) : (now + by + numbers.length) % numbers.length];
}

/**
 * See the times from the next viewpoint, and after the last from the first.
 * @param {Shown} shown
 * @returns {Partial<Shown>}
 */
export function seeFromNext({ seenFrom }) {
  return { seenFrom: VIEWPOINTS[(VIEWPOINTS.indexOf(seenFrom) + 1) % VIEWPOINTS.length] };
}

/**
 * One step back: an empty search, no details, no finding.
 * @param {Shown} shown
 * @param {boolean} searching whether somebody is at the search
 * @returns {Partial<Shown>}
 */
export function goBack({ search, chosen, finding }, searching) {
  if (searching && search) return { search: "" };
  if (chosen !== null) return { chosen: null };
  return finding === null ? {} : { finding: null };
}

/**
 * What of a view is here: a link may be that of another page.
 * @param {View} view
 * @param {{servers: string[], apps: string[], findings: {has: (number: number) => boolean}, streams: {has: (stream: number) => boolean}, viewpoints: string[]}} here
 * @returns {View}
 */
export function possible(view, { servers, apps, findings, streams, viewpoints }) {
  return {
    ...view,
    server: servers.includes(view.server) ? view.server : "", app: apps.includes(view.app) ? view.app : "",
    finding: view.finding !== null && findings.has(view.finding) ? view.finding : null,
    chosen: view.chosen !== null && streams.has(view.chosen) ? view.chosen : null,
    seenFrom: viewpoints.includes(view.seenFrom) ? view.seenFrom : PLAIN_VIEW.seenFrom,
  };
}
